// Why requests to a site fail, as nodes tell it and the overview shows it.

/** Causes of failed requests. `edge`: not the origin. */
export const FAILURE_CAUSES = [
  'origin-unreachable',
  'origin-timeout',
  'origin-dns',
  'origin-tls',
  'origin-forbidden',
  'origin-busy',
  'origin-status',
  'edge',
] as const;
export type FailureCause = (typeof FAILURE_CAUSES)[number];
