// Every error a client can meet: code -> status, English text, and what `data` carries. `fail` is the only way to
// answer one. Clients translate code and data; nobody parses the text. Codes of a resource stand beside it, in
// resources/<name>.codes.ts.
import { type ErrorEntries, entry } from './error-entry.ts';
import { ERROR_LISTS } from './gen/errors.ts';
import { merged } from './registered.ts';

const GENERAL = {
  BAD_REQUEST: entry(400, 'The request is not valid. Correct the fields listed in `data.issues`.'),
  UNAUTHORIZED: entry(
    401,
    'Credentials are missing or not valid. Sign in, or send a valid key in the header `x-api-key`.',
  ),
  NOT_FOUND: entry(404, 'Nothing exists at this path. Check the path and the method.'),
  PAYLOAD_TOO_LARGE: entry(413, 'The request body is too large. Send a smaller one.'),
  UNSUPPORTED_MEDIA_TYPE: entry(415, 'The content type is not supported. Send `application/json`.'),
  INTERNAL_SERVER_ERROR: entry(500, 'An internal error occurred. Search the console log for the ID in `data.id`.'),
  SERVICE_UNAVAILABLE: entry(
    503,
    'The service is temporarily unavailable. Retry after `data.retryAfterSeconds` seconds.',
  ),
  UPDATED_AT_MISMATCH: entry(
    409,
    'The resource changed since you read it. Read it again; its current `updatedAt` is in `data.updatedAt`.',
  ),
  NODE_CAPABILITY_REQUIRED: entry(
    409,
    'Some nodes of the cluster lack a capability that this change needs. Upgrade them first.',
  ),
  CSRF_HEADER_REQUIRED: entry(403, 'The CSRF header is missing. Send the header `x-csrf-token: orpc`.'),
  CROSS_SITE_REQUEST: entry(403, 'The request comes from another origin. Send it from the console itself.'),
  API_KEY_RATE_LIMITED: entry(
    429,
    'Too many requests with this access key, or too many unknown keys from this address. Retry after ' +
      '`data.retryAfterSeconds` seconds.',
  ),
  EXPORT_LIMIT: entry(
    429,
    'Too many exports are running; at most `data.limit` run at a time. Retry when one has finished.',
  ),
  IDEMPOTENCY_KEY_MISMATCH: entry(422, 'The idempotency key was already used with a different request. Use a new key.'),
  IDEMPOTENCY_IN_PROGRESS: entry(409, 'The first request with this idempotency key is still running. Retry later.'),
  IDEMPOTENCY_KEY_INVALID: entry(400, 'The idempotency key is not valid. Use 1 to 255 printable ASCII characters.'),
  IDEMPOTENCY_KEY_UNSUPPORTED: entry(
    400,
    'This endpoint returns a one-time secret and accepts no idempotency key. Remove the `Idempotency-Key` header.',
  ),
} satisfies ErrorEntries;

export const ERRORS = merged([GENERAL, ...ERROR_LISTS]);

export type ErrorCode = keyof typeof ERRORS;

/** Codes any procedure can answer, so no procedure lists them. */
export const GENERAL_CODES: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'UNAUTHORIZED',
  'INTERNAL_SERVER_ERROR',
  'SERVICE_UNAVAILABLE',
  'PAYLOAD_TOO_LARGE',
];

/**
 * An error meant for the client. Across processes only `type`, `code`, `message`, `data` and `retryable` survive, so it
 * is recognised by `type` (see {@link errorCodeOf}), never by class.
 */
export class ContractError extends Error {
  /** Status, under the name that the broker carries. */
  readonly code: number;
  readonly type: ErrorCode;
  readonly data: Record<string, unknown>;
  readonly retryable: boolean;

  constructor(type: ErrorCode, data: Record<string, unknown> = {}, cause?: unknown) {
    super(ERRORS[type].message, { cause });
    this.name = 'ContractError';
    this.type = type;
    this.code = ERRORS[type].status;
    this.data = data;
    this.retryable = type === 'SERVICE_UNAVAILABLE';
  }
}

/** Throws the error with the code; `data` are its parameters, never secrets. */
export function fail(code: ErrorCode, data: Record<string, unknown> = {}, cause?: unknown): never {
  throw new ContractError(code, data, cause);
}

/** The code of an error meant for the client, also after it crossed a process; undefined for a bug. */
export function errorCodeOf(error: unknown): ErrorCode | undefined {
  const type = (error as { type?: unknown } | null)?.type;
  return typeof type === 'string' && Object.hasOwn(ERRORS, type) ? (type as ErrorCode) : undefined;
}

/** One thing wrong with an input: where (JSON pointer), which rule, and the rule's parameters. */
export interface Issue {
  path: string;
  keyword: string;
  params: Record<string, unknown>;
}

/** BAD_REQUEST for one field that the schema alone cannot judge. */
export function badField(path: string, keyword: string, params: Record<string, unknown> = {}): never {
  fail('BAD_REQUEST', { issues: [{ path, keyword, params } satisfies Issue] });
}
