/** Capabilities of nodes that an expression can need, in the order in which they are named. */
export const EXPRESSION_CAPABILITIES = [
  'rules-v2',
  'rules-v3',
  'raw-path-v1',
  'client-ip-v1',
  'ja4-v1',
  'geoip-country-v1',
  'geoip-subdivision-v1',
  'geoip-asn-v1',
] as const;
export type ExpressionCapability = (typeof EXPRESSION_CAPABILITIES)[number];
