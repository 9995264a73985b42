/** Phases of rules, in the order in which a request meets them. */
export const PHASES = [
  'request-transform',
  'redirect',
  'config',
  'waf-custom',
  'ratelimit',
  'cache',
  'origin',
  'response-transform',
  'compression',
] as const;
export type Phase = (typeof PHASES)[number];

/** Those that look at a response. */
export const RESPONSE_PHASES: readonly Phase[] = ['response-transform', 'compression'];
