// What an authority refuses with (RFC 8555, section 6.7). Its texts are kept nowhere: what people read is our code.

/** Problems with a code of their own, by the last part of their type. */
const CODES: Readonly<Record<string, string>> = {
  externalAccountRequired: 'acme_external_account_required',
  unauthorized: 'acme_unauthorized',
  caa: 'acme_caa',
  dns: 'acme_dns',
  connection: 'acme_connection',
  tls: 'acme_tls',
  incorrectResponse: 'acme_incorrect_response',
  rejectedIdentifier: 'acme_rejected_identifier',
  unsupportedIdentifier: 'acme_unsupported_identifier',
  rateLimited: 'acme_rate_limited',
  badCSR: 'acme_bad_csr',
  invalidContact: 'acme_invalid_contact',
  unsupportedContact: 'acme_unsupported_contact',
  userActionRequired: 'acme_user_action_required',
  accountDoesNotExist: 'acme_account_does_not_exist',
  orderNotReady: 'acme_order_not_ready',
  malformed: 'acme_malformed',
  serverInternal: 'acme_server_internal',
};

const PREFIX = 'urn:ietf:params:acme:error:';

/** A refusal, as an answer's body or an authorization's challenge tells it. */
export class AcmeProblem extends Error {
  /** Last part of the type, such as rateLimited; empty when it is none of RFC 8555. */
  readonly type: string;
  readonly status: number;
  /** Not before then; null where the authority did not say. */
  readonly retryAt: Date | null;
  /** Names that it is about, where it tells. */
  readonly names: readonly string[];
  /** It refuses everybody, whatever was asked. */
  readonly ofEverybody: boolean;

  constructor(type: string, status: number, retryAt: Date | null, names: readonly string[]) {
    super(`the CA rejected the request: ${type || status}`);
    this.name = 'AcmeProblem';
    this.type = type;
    this.status = status;
    this.retryAt = retryAt;
    this.names = names;
    this.ofEverybody = status === 503;
  }

  /** Asking again may help: the authority is not well, which says nothing about the order. */
  get passing(): boolean {
    if (this.type === 'rateLimited') return false;
    return this.status >= 500 || this.status === 408 || this.status === 429 || this.type === 'badNonce';
  }

  /** Code of a certificate's lastError. */
  get code(): string {
    return CODES[this.type] ?? 'acme_error';
  }
}

interface ProblemDocument {
  type?: unknown;
  subproblems?: { type?: unknown; identifier?: { value?: unknown } }[];
}

export function problemOf(document: unknown, status: number, retryAt: Date | null): AcmeProblem {
  const { type, subproblems } = (document ?? {}) as ProblemDocument;
  const parts = Array.isArray(subproblems) ? subproblems : [];
  const names = parts.flatMap((part) => (typeof part?.identifier?.value === 'string' ? [part.identifier.value] : []));
  // Of several refusals under one roof the first says more than the roof.
  const told = [type === `${PREFIX}compound` ? parts[0]?.type : type].find((one) => typeof one === 'string') ?? '';
  const short = (told as string).startsWith(PREFIX) ? (told as string).slice(PREFIX.length) : '';
  return new AcmeProblem(short, status, retryAt, names);
}

/** When a Retry-After wants one back, from seconds or a date; null without one that makes sense. At most a week. */
export function retryAt(header: string | undefined, now: Date): Date | null {
  if (!header) return null;
  const at = /^[0-9]{1,9}$/.test(header) ? now.getTime() + Number(header) * 1000 : Date.parse(header);
  if (Number.isNaN(at)) return null;
  return new Date(Math.min(Math.max(at, now.getTime()), now.getTime() + 7 * 86_400_000));
}
