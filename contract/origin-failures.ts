// Why an origin fails, as nodes report it and the Web UI shows it.

/** Classes of failures of origins. */
export const ORIGIN_FAILURES = [
  'connect_failed',
  'timeout',
  'upstream_status',
  'dns_failed',
  'address_forbidden',
  'tls_failed',
] as const;
export type OriginFailure = (typeof ORIGIN_FAILURES)[number];
