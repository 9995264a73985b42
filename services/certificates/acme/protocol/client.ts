// Talks to a certificate authority (RFC 8555, RFC 9773). It keeps nothing but nonces: what has to outlive the process is
// answered, and its caller stores it before the next step.
import type { KeyObject } from 'node:crypto';
import { type OutboundAnswer, sendOutbound } from '../../../../runtime/outbound.ts';
import { binding, type ExternalAccount, signed } from './jws.ts';
import { AcmeProblem, problemOf, retryAt } from './problem.ts';

/** Where an authority is, and how it is reached. */
export interface DirectoryAt {
  url: string;
  /** PEM of authorities that vouch for its server; null: those of the system. */
  ca: readonly string[] | null;
  /** CIDRs exempt from the address policy. */
  allow: readonly string[];
}

export interface Directory {
  newNonce: string;
  newAccount: string;
  newOrder: string;
  /** Null where the authority does not tell when to renew. */
  renewalInfo: string | null;
  externalAccountRequired: boolean;
  /** Names that CAA records call it by; empty where it does not say. */
  caaIdentities: readonly string[];
}

/** An answer that is JSON, or the text of another. */
export interface Answer {
  status: number;
  location: string | null;
  retryAt: Date | null;
  body: Record<string, unknown>;
  text: string;
}

/** The directory answered something that is none. */
export class DirectoryInvalid extends Error {}

const REQUEST_MS = 20_000;
const DIRECTORY_MS = 10_000;
const MAX_BYTES = 1_048_576;
const NONCE_TRIES = 4;
const MAX_URL = 2048;

/** Reads the directory, in 10 s. Throws {@link DirectoryInvalid}, AcmeProblem and OutboundFailed. */
export async function readDirectory(at: DirectoryAt, signal?: AbortSignal): Promise<Directory> {
  const answer = await send(at, 'GET', new URL(at.url), undefined, DIRECTORY_MS, signal);
  if (answer.status !== 200) throw refusalOfEverybody(answer);
  const body = json(answer);
  const meta = (body.meta ?? {}) as { externalAccountRequired?: unknown; caaIdentities?: unknown };
  const caa = Array.isArray(meta.caaIdentities) ? meta.caaIdentities : [];
  return {
    newNonce: requiredUrl(body.newNonce),
    newAccount: requiredUrl(body.newAccount),
    newOrder: requiredUrl(body.newOrder),
    renewalInfo: body.renewalInfo === undefined ? null : requiredUrl(body.renewalInfo),
    externalAccountRequired: meta.externalAccountRequired === true,
    caaIdentities: caa.filter((one): one is string => typeof one === 'string').slice(0, 20),
  };
}

function requiredUrl(value: unknown): string {
  const url = typeof value === 'string' && value.length <= MAX_URL ? URL.parse(value) : null;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') throw new DirectoryInvalid();
  return url.href;
}

/** One account at one authority. */
export class AcmeClient {
  readonly directory: Directory;
  readonly #at: DirectoryAt;
  readonly #key: KeyObject;
  readonly #kid: string | null;
  readonly #signal: AbortSignal | undefined;
  #nonce: string | null = null;

  constructor(at: DirectoryAt, directory: Directory, key: KeyObject, kid: string | null, signal?: AbortSignal) {
    this.#at = at;
    this.directory = directory;
    this.#key = key;
    this.#kid = kid;
    this.#signal = signal;
  }

  /** Address of the account with this key, which is made if there is none. Repeating it is safe. */
  async account(email: string, external: ExternalAccount | null): Promise<string> {
    const { newAccount } = this.directory;
    const { status, location } = await this.post(newAccount, {
      termsOfServiceAgreed: true,
      contact: [`mailto:${email}`],
      ...(external ? { externalAccountBinding: binding(this.#key, external, newAccount) } : {}),
    });
    if (location === null) throw new AcmeProblem('', status, null, []);
    return location;
  }

  /** Sends a signed message; null asks for the resource. Throws AcmeProblem and OutboundFailed. */
  async post(url: string, payload: object | null): Promise<Answer> {
    const target = requiredUrl(url);
    for (let attempt = 1; ; attempt++) {
      const nonce = await this.#takeNonce();
      const message = signed(this.#key, { nonce, url: target, kid: this.#kid }, payload);
      const answer = await send(this.#at, 'POST', new URL(target), JSON.stringify(message), REQUEST_MS, this.#signal);
      this.#nonce = nonceOf(answer);
      if (answer.status < 400) return present(answer);
      const problem = refusal(answer);
      // Nonces end with time and with restarts of the authority; another message is as good.
      if (problem.type !== 'badNonce' || attempt === NONCE_TRIES) throw problem;
    }
  }

  async #takeNonce(): Promise<string> {
    const kept = this.#nonce;
    this.#nonce = null;
    if (kept !== null) return kept;
    const { newNonce } = this.directory;
    const answer = await send(this.#at, 'HEAD', new URL(newNonce), undefined, REQUEST_MS, this.#signal);
    const nonce = nonceOf(answer);
    if (nonce === null || answer.status === 429 || answer.status >= 500) throw refusalOfEverybody(answer);
    return nonce;
  }
}

/** Asks for an unsigned resource. Throws AcmeProblem and OutboundFailed. */
export async function getUnsigned(at: DirectoryAt, url: string, signal?: AbortSignal): Promise<Answer> {
  const answer = await send(at, 'GET', new URL(requiredUrl(url)), undefined, REQUEST_MS, signal);
  if (answer.status >= 400) throw refusal(answer);
  return present(answer);
}

function send(
  { ca, allow }: DirectoryAt,
  method: 'GET' | 'HEAD' | 'POST',
  url: URL,
  body: string | undefined,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<OutboundAnswer> {
  return sendOutbound({
    url,
    method,
    ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/jose+json' } }),
    ca: ca ?? undefined,
    allow,
    timeoutMs,
    maxBytes: MAX_BYTES,
    signal,
  });
}

function present(answer: OutboundAnswer): Answer {
  const { location } = answer.headers;
  const isJson = /^application\/(json|problem\+json)\b/.test(answer.headers['content-type'] ?? '');
  return {
    status: answer.status,
    location: location !== undefined && location.length <= MAX_URL ? location : null,
    retryAt: retryAt(answer.headers['retry-after'], new Date()),
    body: isJson ? json(answer) : {},
    text: isJson ? '' : answer.body.toString('latin1'),
  };
}

function refusal(answer: OutboundAnswer): AcmeProblem {
  let document: unknown = null;
  try {
    document = JSON.parse(answer.body.toString());
  } catch {
    // A proxy's page, or nothing at all: the status says what there is to say.
  }
  return problemOf(document, answer.status, retryAt(answer.headers['retry-after'], new Date()));
}

/** Of what nobody is asked anything without. */
function refusalOfEverybody(answer: OutboundAnswer): AcmeProblem {
  return Object.assign(refusal(answer), { ofEverybody: true });
}

function json(answer: OutboundAnswer): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(answer.body.toString());
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new DirectoryInvalid();
}

function nonceOf(answer: OutboundAnswer): string | null {
  const nonce = answer.headers['replay-nonce'];
  return typeof nonce === 'string' && /^[A-Za-z0-9_-]{1,512}$/.test(nonce) ? nonce : null;
}
