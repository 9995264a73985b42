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

/** Classes of failures of requests to origins. A full origin is no failed one. */
export const TRAFFIC_FAILURES = [...ORIGIN_FAILURES, 'connections_in_use'] as const;
export type TrafficFailure = (typeof TRAFFIC_FAILURES)[number];
