// A certificate authority that speaks RFC 8555 and RFC 9773 as strictly as a real one where it matters: nonces count once,
// signatures are checked, and nothing is signed that was not shown. A script makes it refuse, lose answers or hang.
import 'reflect-metadata';
import { createHash, createHmac, createPublicKey, randomBytes, timingSafeEqual, verify, webcrypto } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;

interface Jwk {
  kty: string;
  crv: string;
  x: string;
  y: string;
}

/** What a request asks for. */
export type Asked =
  | 'directory'
  | 'nonce'
  | 'account'
  | 'new-order'
  | 'authorization'
  | 'challenge'
  | 'order'
  | 'finalize'
  | 'certificate'
  | 'renewal';

/** A refusal: the last part of its type, its status, and headers. */
export interface Refusal {
  type: string;
  status: number;
  headers?: Record<string, string>;
  subproblems?: { type: string; name: string }[];
}

/** What becomes of a request: null: as it should; lose: it is worked on and the connection ends; hang: without an answer. */
export type Verdict = Refusal | 'lose' | 'hang' | null;

export interface ShownAnswer {
  name: string;
  wildcard: boolean;
  type: 'http-01' | 'dns-01';
  token: string;
  /** What http-01 has to answer. */
  keyAuthorization: string;
  /** What dns-01 has to have as a TXT record. */
  digest: string;
}

export interface AcmeDirectoryOptions {
  /** Whether the answer is there: true, or the type of the refusal. */
  look: (shown: ShownAnswer) => Promise<true | string>;
  /** What becomes of the n-th request (from 1). */
  script?: (asked: Asked, n: number) => Verdict;
  /** External accounts by their ids, with keys in base64url; required when given. */
  external?: Record<string, string>;
  /** Life of what is issued, milliseconds. Default 90 days. */
  lifeMs?: number;
  caaIdentities?: string[];
  /** Whether an account gets its authorizations that are pending again. */
  reuses?: boolean;
}

interface Order {
  id: string;
  account: string;
  names: string[];
  replaces: string | null;
  status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';
  authorizations: string[];
  csrHash: string | null;
  certificate: string | null;
}

interface Authorization {
  id: string;
  account: string;
  name: string;
  wildcard: boolean;
  status: 'pending' | 'valid' | 'invalid';
  challenges: Challenge[];
}

interface Challenge {
  type: 'http-01' | 'dns-01';
  token: string;
  status: 'pending' | 'processing' | 'valid' | 'invalid';
  error?: unknown;
}

interface Message {
  account: string;
  jwk: Jwk;
  payload: Record<string, unknown> | null;
}

export interface TestAuthority {
  url: string;
  /** PEM of the authority that vouches for its server, and signs. */
  caPem: string;
  options: AcmeDirectoryOptions;
  /** Names of each certificate issued, oldest first. */
  issued: { names: string[]; pem: string; replaces: string | null }[];
  /** Names of each order placed, oldest first. */
  ordered: string[][];
  /** Every request, oldest first. */
  requests: Asked[];
  /** Accounts by their addresses. */
  accounts: Map<string, { contact: string[]; external: string | null }>;
  /** Suggested window of renewals, by certificate; null: none. */
  window: { start: Date; end: Date } | null;
  close(): Promise<void>;
}

class Refused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.type);
    this.refusal = refusal;
  }
}

const refuse = (type: string, status = 400): never => {
  throw new Refused({ type, status });
};

/** Starts the authority on 127.0.0.1. */
export async function startAcmeDirectory(options: AcmeDirectoryOptions): Promise<TestAuthority> {
  const authority = await newAuthority();
  const server = createServer({ cert: authority.serverPem, key: authority.serverKeyPem });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const served = new Served(base, authority, options);
  server.on('request', (request, response) => void served.answer(request, response));
  return Object.assign(served.shown, { close: () => closed(server) });
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

class Served {
  readonly shown: Omit<TestAuthority, 'close'>;
  readonly #base: string;
  readonly #signer: Signer;
  readonly #nonces = new Set<string>();
  readonly #keys = new Map<string, { id: string; jwk: Jwk }>();
  readonly #orders = new Map<string, Order>();
  readonly #authorizations = new Map<string, Authorization>();
  readonly #certificates = new Map<string, string>();

  constructor(base: string, signer: Signer, options: AcmeDirectoryOptions) {
    this.#base = base;
    this.#signer = signer;
    this.shown = {
      url: `${base}/directory`,
      caPem: signer.caPem,
      options,
      issued: [],
      ordered: [],
      requests: [],
      accounts: new Map(),
      window: null,
    };
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, asked = '', id = ''] = (request.url ?? '').split('/') as [string, Asked, string];
    this.shown.requests.push(asked as Asked);
    const verdict = this.shown.options.script?.(asked as Asked, this.shown.requests.length) ?? null;
    const headers: Record<string, string> = { 'replay-nonce': this.#newNonce(), 'content-type': 'application/json' };
    let status = 200;
    let body: unknown = null;
    try {
      if (typeof verdict === 'object' && verdict !== null) throw new Refused(verdict);
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      ({ status = 200, body } = await this.#work(asked as Asked, id, Buffer.concat(chunks).toString(), headers));
    } catch (error) {
      const { type, status: code, headers: more, subproblems } = refusalOf(error);
      status = code;
      Object.assign(headers, { 'content-type': 'application/problem+json' }, more);
      const parts = subproblems?.map((part) => ({
        type: urn(part.type),
        identifier: { type: 'dns', value: part.name },
      }));
      body = { type: urn(type), detail: 'text of the authority', ...(parts ? { subproblems: parts } : {}) };
    }
    if (verdict === 'lose') return void request.socket.destroy();
    if (verdict === 'hang') return;
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  async #work(
    asked: Asked,
    id: string,
    text: string,
    headers: Record<string, string>,
  ): Promise<{ status?: number; body: unknown }> {
    switch (asked) {
      case 'directory':
        return { body: this.#directory() };
      case 'nonce':
        return { body: '' };
      case 'renewal':
        return this.#renewal(headers);
      case 'account':
        return this.#account(text, headers);
      case 'new-order':
        return this.#newOrder(this.#message(text, asked), headers);
      default: {
        const message = this.#message(text, `${asked}/${id}`);
        if (asked === 'authorization') return { body: this.#presentAuthorization(this.#authorization(id, message)) };
        if (asked === 'challenge') return this.#challenge(id, message);
        if (asked === 'order') return { body: this.#presentOrder(this.#order(id, message)) };
        if (asked === 'finalize') return { body: await this.#finalize(this.#order(id, message), message) };
        headers['content-type'] = 'application/pem-certificate-chain';
        return { body: this.#certificates.get(id) ?? refuse('malformed', 404) };
      }
    }
  }

  #directory(): unknown {
    const { external, caaIdentities } = this.shown.options;
    return {
      newNonce: `${this.#base}/nonce`,
      newAccount: `${this.#base}/account`,
      newOrder: `${this.#base}/new-order`,
      renewalInfo: `${this.#base}/renewal`,
      meta: {
        ...(external ? { externalAccountRequired: true } : {}),
        ...(caaIdentities ? { caaIdentities } : {}),
      },
    };
  }

  #renewal(headers: Record<string, string>): { body: unknown } {
    const { window } = this.shown;
    headers['retry-after'] = '21600';
    if (!window) return refuse('malformed', 404);
    return { body: { suggestedWindow: { start: window.start.toISOString(), end: window.end.toISOString() } } };
  }

  #account(text: string, headers: Record<string, string>): { status: number; body: unknown } {
    const { jwk, payload } = this.#opened(text, 'account', true);
    const print = createHash('sha256')
      .update(JSON.stringify(thumbprintOf(jwk)))
      .digest('base64url');
    const external = this.#external(payload?.externalAccountBinding, jwk);
    const known = this.#keys.get(print);
    const id = known?.id ?? `${this.#base}/accounts/${this.#keys.size + 1}`;
    this.#keys.set(print, { id, jwk });
    if (!known) this.shown.accounts.set(id, { contact: (payload?.contact as string[]) ?? [], external });
    headers.location = id;
    return { status: known ? 200 : 201, body: { status: 'valid' } };
  }

  #external(given: unknown, jwk: Jwk): string | null {
    const { external } = this.shown.options;
    if (!external) return null;
    if (!given) return refuse('externalAccountRequired', 403);
    const { protected: head, payload, signature } = given as Record<string, string>;
    const { kid, alg, url } = parse(head!) as Record<string, string>;
    const key = external[kid!] ?? refuse('unauthorized', 403);
    const expected = createHmac('sha256', Buffer.from(key, 'base64url')).update(`${head}.${payload}`).digest();
    const right = timingSafeEqual(expected, Buffer.from(signature!, 'base64url'));
    const same = JSON.stringify(thumbprintOf(parse(payload!) as Jwk)) === JSON.stringify(thumbprintOf(jwk));
    if (!right || !same || alg !== 'HS256' || url !== `${this.#base}/account`) refuse('unauthorized', 403);
    return kid!;
  }

  #message(text: string, path: string): Message {
    return this.#opened(text, path, false);
  }

  /** Checks nonce, address and signature. */
  #opened(text: string, path: string, isNew: boolean): Message {
    const { protected: head = '', payload = '', signature = '' } = JSON.parse(text) as Record<string, string>;
    const { nonce, url, kid, jwk, alg } = parse(head) as Record<string, string> & { jwk?: Jwk };
    if (!this.#nonces.delete(nonce!)) refuse('badNonce');
    if (url !== `${this.#base}/${path}` || alg !== 'ES256') refuse('malformed');
    const known = [...this.#keys.values()].find(({ id }) => id === kid);
    if (!isNew && !known) refuse('accountDoesNotExist');
    const key = isNew ? jwk! : known!.jwk;
    const publicKey = createPublicKey({ key: key as never, format: 'jwk' });
    const signed = Buffer.from(`${head}.${payload}`);
    const given = Buffer.from(signature, 'base64url');
    if (!verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, given)) refuse('malformed');
    const body = payload === '' ? null : (parse(payload) as Record<string, unknown>);
    return { account: known?.id ?? '', jwk: key, payload: body };
  }

  #newOrder({ account, payload }: Message, headers: Record<string, string>): { status: number; body: unknown } {
    const names = (payload!.identifiers as { value: string }[]).map(({ value }) => value);
    const replaces = (payload!.replaces as string | undefined) ?? null;
    if (replaces && this.shown.issued.some((one) => one.replaces === replaces)) refuse('alreadyReplaced', 409);
    this.shown.ordered.push(names);
    const id = String(this.#orders.size + 1);
    const authorizations = names.map((name) => this.#newAuthorization(account, name));
    this.#orders.set(id, {
      id,
      account,
      names,
      replaces,
      status: 'pending',
      authorizations,
      csrHash: null,
      certificate: null,
    });
    headers.location = `${this.#base}/order/${id}`;
    return { status: 201, body: this.#presentOrder(this.#orders.get(id)!) };
  }

  #newAuthorization(account: string, text: string): string {
    const wildcard = text.startsWith('*.');
    const id = String(this.#authorizations.size + 1);
    const types = wildcard ? (['dns-01'] as const) : (['http-01', 'dns-01'] as const);
    const challenges = types.map((type) => ({
      type,
      token: randomBytes(24).toString('base64url'),
      status: 'pending' as const,
    }));
    const name = wildcard ? text.slice(2) : text;
    const same = [...this.#authorizations.values()].find(
      (one) => one.account === account && one.name === name && one.wildcard === wildcard && one.status === 'pending',
    );
    if (this.shown.options.reuses && same) return same.id;
    this.#authorizations.set(id, { id, account, name, wildcard, status: 'pending', challenges });
    return id;
  }

  #order(id: string, { account }: Message): Order {
    const order = this.#orders.get(id);
    return order?.account === account ? order : refuse('unauthorized', 403);
  }

  #authorization(id: string, { account }: Message): Authorization {
    const found = this.#authorizations.get(id);
    return found?.account === account ? found : refuse('unauthorized', 403);
  }

  #presentAuthorization(one: Authorization): unknown {
    return {
      identifier: { type: 'dns', value: one.name },
      status: one.status,
      ...(one.wildcard ? { wildcard: true } : {}),
      challenges: one.challenges.map((challenge) => ({
        ...challenge,
        url: `${this.#base}/challenge/${one.id}-${challenge.type}`,
      })),
    };
  }

  #presentOrder(order: Order): unknown {
    const found = order.authorizations.map((id) => this.#authorizations.get(id)!.status);
    if (order.status === 'pending' && found.every((status) => status === 'valid')) order.status = 'ready';
    if (order.status === 'pending' && found.includes('invalid')) order.status = 'invalid';
    return {
      status: order.status,
      identifiers: order.names.map((value) => ({ type: 'dns', value })),
      authorizations: order.authorizations.map((id) => `${this.#base}/authorization/${id}`),
      finalize: `${this.#base}/finalize/${order.id}`,
      ...(order.certificate ? { certificate: `${this.#base}/certificate/${order.certificate}` } : {}),
    };
  }

  #challenge(place: string, message: Message): { body: unknown } {
    const [id = '', ...rest] = place.split('-');
    const one = this.#authorization(id, message);
    const challenge = one.challenges.find(({ type }) => type === rest.join('-')) ?? refuse('malformed', 404);
    // As Boulder and Pebble do: one that is being looked at, or was, is not asked for again.
    if (one.status !== 'pending' || challenge.status !== 'pending') refuse('malformed');
    challenge.status = 'processing';
    void this.#validate(one, challenge, message.jwk);
    return { body: { ...challenge, url: `${this.#base}/challenge/${place}` } };
  }

  /** Looks while nobody waits for it: authorizations tell what came of it. */
  async #validate(one: Authorization, challenge: Challenge, jwk: Jwk): Promise<void> {
    const print = createHash('sha256')
      .update(JSON.stringify(thumbprintOf(jwk)))
      .digest('base64url');
    const keyAuthorization = `${challenge.token}.${print}`;
    const digest = createHash('sha256').update(keyAuthorization).digest('base64url');
    const { name, wildcard } = one;
    const { type, token } = challenge;
    const shown = { name, wildcard, type, token, keyAuthorization, digest };
    const found = await this.shown.options.look(shown).catch(() => 'connection');
    one.status = found === true ? 'valid' : 'invalid';
    challenge.status = one.status;
    if (found !== true) challenge.error = { type: urn(found), detail: 'text of the authority' };
  }

  async #finalize(order: Order, { payload }: Message): Promise<unknown> {
    this.#presentOrder(order);
    if (order.status !== 'ready') refuse('orderNotReady', 403);
    const csr = new Pkcs10CertificateRequest(Buffer.from(payload!.csr as string, 'base64url'));
    const asked = sansOf(csr);
    if (!(await csr.verify(webcrypto)) || asked.toSorted().join() !== order.names.toSorted().join()) refuse('badCSR');
    const pem = await this.#signer.sign(csr, order.names, this.shown.options.lifeMs ?? 90 * DAY_MS);
    this.shown.issued.push({ names: order.names, pem, replaces: order.replaces });
    order.certificate = order.id;
    order.status = 'valid';
    this.#certificates.set(order.id, pem);
    return this.#presentOrder(order);
  }

  #newNonce(): string {
    const nonce = randomBytes(16).toString('base64url');
    this.#nonces.add(nonce);
    return nonce;
  }
}

function sansOf({ extensions }: Pkcs10CertificateRequest): string[] {
  const found = extensions.find((one) => one instanceof SubjectAlternativeNameExtension);
  return found?.names.items.map(({ value }) => value) ?? [];
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  return { type: 'malformed', status: 400 };
}

function urn(type: string): string {
  return `urn:ietf:params:acme:error:${type}`;
}

function parse(text: string): unknown {
  return JSON.parse(Buffer.from(text, 'base64url').toString());
}

function thumbprintOf({ crv, kty, x, y }: Jwk): unknown {
  return { crv, kty, x, y };
}

interface Signer {
  caPem: string;
  serverPem: string;
  serverKeyPem: string;
  sign(csr: Pkcs10CertificateRequest, names: readonly string[], lifeMs: number): Promise<string>;
}

/** An authority, and an intermediate that signs in its name. */
async function newAuthority(): Promise<Signer> {
  const [rootKeys, keys, serverKeys] = await Promise.all([1, 2, 3].map(newKeys));
  const root = await issue({ subject: 'CN=Test Root', keys: rootKeys!, issuer: null, ca: true, names: [] });
  const between = await issue({
    subject: 'CN=Test Authority',
    keys: keys!,
    issuer: { certificate: root, key: rootKeys!.privateKey },
    ca: true,
    names: [],
  });
  const issuer = { certificate: between, key: keys!.privateKey };
  const server = await issue({
    subject: 'CN=acme',
    keys: serverKeys!,
    issuer: { certificate: root, key: rootKeys!.privateKey },
    ca: false,
    names: ['127.0.0.1'],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', serverKeys!.privateKey)).toString('base64');
  return {
    caPem: root.toString('pem'),
    serverPem: server.toString('pem'),
    serverKeyPem: `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`,
    async sign(csr, names, lifeMs) {
      const leaf = await issue({ subject: '', keys: csr, issuer, ca: false, names, lifeMs });
      return `${leaf.toString('pem')}\n${between.toString('pem')}\n`;
    },
  };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;
}

interface Wanted {
  subject: string;
  keys: webcrypto.CryptoKeyPair | Pkcs10CertificateRequest;
  issuer: { certificate: X509Certificate; key: webcrypto.CryptoKey } | null;
  ca: boolean;
  names: readonly string[];
  lifeMs?: number;
}

async function issue({ subject, keys, issuer, ca, names, lifeMs = 365 * DAY_MS }: Wanted): Promise<X509Certificate> {
  const own = keys instanceof Pkcs10CertificateRequest ? null : keys;
  const publicKey = keys instanceof Pkcs10CertificateRequest ? keys.publicKey : keys.publicKey;
  const alternatives = names.map((value) => ({
    type: /^[0-9.]+$/.test(value) ? ('ip' as const) : ('dns' as const),
    value,
  }));
  return X509CertificateGenerator.create(
    {
      serialNumber: `4a${randomBytes(15).toString('hex')}`,
      ...(subject === '' ? {} : { subject }),
      issuer: issuer ? issuer.certificate.subjectName : subject,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() - 60_000 + lifeMs),
      publicKey,
      signingKey: issuer?.key ?? own!.privateKey,
      signingAlgorithm: P256,
      extensions: [
        new BasicConstraintsExtension(ca, undefined, true),
        ...(ca ? [new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.digitalSignature, true)] : []),
        await SubjectKeyIdentifierExtension.create(publicKey, false, webcrypto),
        ...(issuer ? [await AuthorityKeyIdentifierExtension.create(issuer.certificate, false, webcrypto)] : []),
        ...(names.length > 0 ? [new SubjectAlternativeNameExtension(alternatives)] : []),
      ],
    },
    webcrypto,
  );
}
