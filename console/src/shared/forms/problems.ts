// Which field an error is about: the server names it in an issue or beside its code, or the code judges one field only.
// Pure.
import type { ErrorCode, Issue } from '@contract/errors.ts';
import { CallError } from '../api/call-error.ts';

/** Something wrong with a value of a form. */
export interface Problem {
  /** Dotted, as deep as it is known: `origins.1.port`. */
  path: string;
  /** The rule that is broken; the error itself where its code says it all. */
  why: Issue | CallError;
}

/** Codes that judge one field. Where several are named, a form has one of them. */
const FIELDS: Partial<Record<ErrorCode, readonly string[]>> = {
  DOMAIN_IN_USE: ['domains'],
  CLUSTER_NOT_FOUND: ['clusterId'],
  CLUSTER_NAME_TAKEN: ['name'],
  NODE_GROUP_NOT_FOUND: ['nodeGroupId'],
  NODE_GROUP_NAME_TAKEN: ['name'],
  NODE_GROUP_CLUSTER_MISMATCH: ['nodeGroupId'],
  REGION_NOT_FOUND: ['regionId'],
  REGION_CODE_TAKEN: ['code'],
  SERVICE_ACCOUNT_NAME_TAKEN: ['name'],
  IP_LIST_NAME_TAKEN: ['name'],
  IP_LIST_LIMIT: ['entries'],
  SITE_NOT_FOUND: ['siteId', 'siteIds'],
  CACHE_TASK_URL_INVALID: ['urls'],
  CACHE_TASK_HOST_INVALID: ['hosts'],
  CACHE_TASK_HOST_UNKNOWN: ['hosts'],
  CACHE_TASK_TAG_INVALID: ['tags'],
  DEFAULT_SITE_INVALID: ['defaultSiteId'],
  DEFAULT_SITE_CERTIFICATE_REQUIRED: ['defaultSiteId'],
  PROTECTION_POW_DIFFICULTY: ['powHighDifficulty'],
  BAN_INVALID_CIDR: ['cidr'],
  BAN_PREFIX_TOO_SHORT: ['cidr'],
  BAN_PROTECTED_ADDRESS: ['cidr'],
  BAN_EXPIRY_OUT_OF_RANGE: ['durationSeconds'],
  SETUP_TOKEN_INVALID: ['setupToken'],
  ACME_DIRECTORY_INVALID: ['url'],
  ACME_DIRECTORY_CA_INVALID: ['caPem'],
  ACME_DIRECTORY_EAB_INCOMPLETE: ['eabHmacKey'],
  INVALID_PASSWORD: ['password', 'currentPassword'],
  INVALID_CODE: ['code'],
  BACKUP_FOLDER_REFUSED: ['folder'],
  BACKUP_KEY_INVALID: ['publicKey'],
  DNS_ZONE_MISMATCH: ['domain'],
  DNS_LINE_UNSUPPORTED: ['lines'],
  DNS_POLICY_INVALID: ['lines'],
  DNS_BINDING_CONFLICT: ['lines'],
  LOG_HEADER_FORBIDDEN: ['logHeaders'],
  LOG_UNTIL_INVALID: ['sampleUntil'],
};

/** `/origins/0/port` as `origins.0.port`. */
export function dotted(pointer: string): string {
  return pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Whether a value lies at the path or inside what is there. */
export function isAt(path: string, value: string): boolean {
  return value === path || value.startsWith(`${path}.`);
}

/** What of an error is told at which of these fields, and what is left to tell beside them. */
export function tellAt(error: CallError | null, paths: readonly string[]): { told: Problem[]; rest: CallError | null } {
  if (error === null) return { told: [], rest: null };
  const named = typeof error.data.path === 'string' ? dotted(error.data.path) : null;
  if (named !== null && paths.some((field) => isAt(field, named)))
    return { told: [{ path: named, why: error }], rest: null };
  const judged = (FIELDS as Record<string, readonly string[]>)[error.code]?.find((path) => paths.includes(path));
  if (judged !== undefined) return { told: [{ path: judged, why: error }], rest: null };
  const problems = error.issues.map((why) => ({ path: dotted(why.path), why }));
  const told = problems.filter(({ path }) => paths.some((field) => isAt(field, path)));
  if (told.length === 0) return { told, rest: error };
  if (told.length === problems.length) return { told, rest: null };
  const issues = problems.filter((problem) => !told.includes(problem)).map(({ why }) => why);
  const { code, message, status, data, requestId } = error;
  return { told, rest: new CallError(code, message, status, { ...data, issues }, requestId) };
}
