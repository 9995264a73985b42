// Every error a client can meet: code -> status, English text, and what `data` carries. `fail` is the only way to
// answer one. Clients translate code and data; nobody parses the text.

interface ErrorEntry {
  readonly status: number;
  readonly message: string;
}

const entry = (status: number, message: string): ErrorEntry => ({ status, message });

export const ERRORS = {
  // General
  BAD_REQUEST: entry(400, 'The request is not valid; see data.issues.'),
  UNAUTHORIZED: entry(401, 'Credentials are missing or not valid.'),
  NOT_FOUND: entry(404, 'There is nothing here.'),
  PAYLOAD_TOO_LARGE: entry(413, 'The request body is too large.'),
  UNSUPPORTED_MEDIA_TYPE: entry(415, 'Send application/json.'),
  INTERNAL_SERVER_ERROR: entry(500, 'Something failed on our side; data.id finds it in the log.'),
  SERVICE_UNAVAILABLE: entry(503, 'The service cannot answer now; try again after data.retryAfterSeconds.'),
  UPDATED_AT_MISMATCH: entry(409, 'The resource was changed meanwhile; data.updatedAt is its current value.'),
  NODE_CAPABILITY_REQUIRED: entry(409, 'Nodes of the cluster lack a capability this change needs.'),
  // Access
  CSRF_HEADER_REQUIRED: entry(403, 'Send the header x-csrf-token: orpc.'),
  CROSS_SITE_REQUEST: entry(403, 'The request comes from another site.'),
  ACCESS_KEY_READ_ONLY: entry(403, 'This access key may only read.'),
  ACCESS_KEY_SESSION_REQUIRED: entry(403, 'Access keys are created from a signed-in console session only.'),
  ACCESS_KEY_NOT_FOUND: entry(404, 'There is no such access key.'),
  SERVICE_ACCOUNT_NOT_FOUND: entry(404, 'There is no such service account.'),
  SERVICE_ACCOUNT_KEY_NOT_FOUND: entry(404, 'The service account has no such key.'),
  SERVICE_ACCOUNT_NAME_TAKEN: entry(409, 'Another service account has this name.'),
  SERVICE_ACCOUNT_KEY_LIMIT: entry(409, 'The service account has as many live keys as it may have.'),
  SCOPE_REQUIRED: entry(403, 'The service account lacks the scope in data.scope.'),
  SERVICE_ACCOUNT_FORBIDDEN: entry(403, 'Service accounts may not call this procedure.'),
  API_KEY_RATE_LIMITED: entry(429, 'Too many requests in a row with this access key.'),
  LIVE_STREAM_LIMIT: entry(429, 'Too many streams of live updates are open; data.limit may be at a time.'),
  IDEMPOTENCY_KEY_MISMATCH: entry(422, 'The idempotency key was used with another request.'),
  IDEMPOTENCY_IN_PROGRESS: entry(409, 'The first request with this idempotency key is still running.'),
  IDEMPOTENCY_KEY_INVALID: entry(400, 'The idempotency key is malformed.'),
  IDEMPOTENCY_KEY_UNSUPPORTED: entry(400, 'This endpoint answers a one-time secret and takes no idempotency key.'),
  INVALID_CREDENTIALS: entry(401, 'E-mail address or password is wrong.'),
  SIGN_IN_RATE_LIMITED: entry(429, 'Too many attempts; wait data.retryAfterSeconds.'),
  INVALID_PASSWORD: entry(400, 'The current password is wrong.'),
  INVALID_CODE: entry(400, 'The code is wrong, or was used before.'),
  SECOND_STEP_EXPIRED: entry(401, 'The second step took too long or failed too often; sign in again.'),
  TWO_FACTOR_ENABLED: entry(409, 'Two-factor sign-in is on; turn it off first.'),
  TWO_FACTOR_NOT_PENDING: entry(409, 'No secret waits for its first code.'),
  PASSKEY_REFUSED: entry(400, 'The passkey was not accepted; start again.'),
  PASSKEY_NOT_FOUND: entry(404, 'There is no such passkey.'),
  PASSKEY_LIMIT: entry(409, 'There are data.limit passkeys already.'),
  PASSKEYS_UNAVAILABLE: entry(409, 'Passkeys need a host name in data.publicUrl, not an address.'),
  SETUP_DONE: entry(403, 'The console is already set up.'),
  SETUP_IN_PROGRESS: entry(409, 'Another setup is running.'),
  SETUP_TOKEN_INVALID: entry(403, 'The setup token is wrong; the console logs it at every start.'),
  // Clusters, nodes
  CLUSTER_NOT_FOUND: entry(404, 'There is no such cluster.'),
  CLUSTER_NAME_TAKEN: entry(409, 'Another cluster has this name.'),
  CLUSTER_NOT_EMPTY: entry(409, 'The cluster still has nodes or sites.'),
  NO_CLUSTER: entry(412, 'There is no cluster yet.'),
  NODE_GROUP_NOT_FOUND: entry(404, 'There is no such node group.'),
  NODE_GROUP_NAME_TAKEN: entry(409, 'The cluster has another group of this name.'),
  NODE_GROUP_IS_DEFAULT: entry(409, 'The default group cannot be deleted.'),
  NODE_GROUP_CLUSTER_MISMATCH: entry(400, 'The group belongs to another cluster.'),
  REGION_NOT_FOUND: entry(404, 'There is no such region.'),
  REGION_CODE_TAKEN: entry(409, 'Another region has this code.'),
  REGION_IN_USE: entry(409, 'The region is still in use.'),
  NODE_NOT_FOUND: entry(404, 'There is no such node.'),
  ENROLLMENT_TOKEN_NOT_FOUND: entry(404, 'There is no such enrollment token.'),
  REVISION_NOT_FOUND: entry(404, 'The cluster has no such revision.'),
  CHANGE_NOT_FOUND: entry(404, 'There is no such change.'),
  // Sites
  SITE_NOT_FOUND: entry(404, 'There is no such site.'),
  SITE_DISABLED: entry(409, 'The site is disabled.'),
  DOMAIN_IN_USE: entry(409, 'A domain belongs to another site.'),
  DOMAIN_INVALID: entry(400, 'Not a valid domain; see data.domain.'),
  ORIGIN_ADDRESS_FORBIDDEN: entry(400, 'The origin is a special-purpose address outside the origin allow list.'),
  ORIGIN_HOST_HEADER_INVALID: entry(400, 'The host header of an origin is not valid.'),
  ORIGIN_GRPC_REQUIRES_HTTP2: entry(400, 'gRPC needs protocol http2.'),
  DEFAULT_SITE_INVALID: entry(400, 'The default site must be an enabled site of the cluster.'),
  DEFAULT_SITE_CERTIFICATE_REQUIRED: entry(409, 'The default site has no certificate.'),
  // Protection
  PROTECTION_POW_DIFFICULTY: entry(400, 'powHighDifficulty is below powDifficulty, which is data.min.'),
  // IP lists
  IP_LIST_NOT_FOUND: entry(404, 'There is no such IP list.'),
  IP_LIST_NAME_TAKEN: entry(409, 'Another IP list has this name.'),
  IP_LIST_LIMIT: entry(409, 'The limit of IP lists or of their entries is reached.'),
  IP_LIST_IN_USE: entry(409, 'The IP list is still referenced.'),
  // Bans
  BAN_INVALID_CIDR: entry(400, 'Not an IP address or CIDR.'),
  BAN_PREFIX_TOO_SHORT: entry(400, 'The range is too large; data.min is the shortest prefix.'),
  BAN_EXPIRY_OUT_OF_RANGE: entry(400, 'durationSeconds is 60 to 604800.'),
  BAN_PROTECTED_ADDRESS: entry(400, 'The ban would cover a protected address.'),
  BAN_PLATFORM_LIMIT: entry(409, 'The limit of active manual bans is reached.'),
  BAN_NOT_FOUND: entry(404, 'There is no such active ban.'),
} as const satisfies Record<string, ErrorEntry>;

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
