// Origins of a site, how they are chosen and talked to, and what bodies may be sent to them.
import Type, { type Static, type TSchema } from 'typebox';
import { OneOf } from '../scalars/common.ts';
import { ActiveHealthCheck, ActiveHealthCheckInput } from './site-health-check.ts';

const Scheme = Type.Union([Type.Literal('http'), Type.Literal('https')]);

const originFields = {
  address: Type.String({
    minLength: 1,
    maxLength: 253,
    description: 'Host name or IP address (IPv6 without brackets). Example: 203.0.113.10.',
  }),
  weight: Type.Integer({ minimum: 1, maximum: 100, default: 1 }),
  backup: Type.Boolean({
    default: false,
    description: 'Whether the origin is used only while no other origin of its group is healthy.',
  }),
  hostHeader: Type.String({
    default: '',
    maxLength: 1024,
    description:
      'Host header sent to the origin: a host name or IP address with an optional port; empty: the host of ' +
      'the request. International names are stored as punycode.',
  }),
  sni: Type.String({
    default: '',
    maxLength: 253,
    description: 'TLS server name; empty: the host header without its port, else the address.',
  }),
  group: Type.String({
    default: '',
    pattern: '^[a-z0-9_-]{0,32}$',
    description: 'Group of the origin; empty: the default group, used unless an origin rule chooses another.',
  }),
};
const Port = { minimum: 1, maximum: 65_535 };

export const Origin = Type.Object({ ...originFields, scheme: Scheme, port: Type.Integer(Port) });

const { address, ...optionalFields } = originFields;
export const OriginInput = Type.Object(
  {
    address,
    scheme: Type.Optional({ ...Scheme, default: 'http' }),
    port: Type.Optional(
      Type.Integer({ ...Port, description: 'Port of the origin. Default 80, or 443 with scheme `https`.' }),
    ),
    ...(Object.fromEntries(Object.entries(optionalFields).map(([key, schema]) => [key, Type.Optional(schema)])) as {
      [K in keyof typeof optionalFields]: ReturnType<typeof Type.Optional<(typeof optionalFields)[K]>>;
    }),
  },
  { additionalProperties: false },
);

const policy = Type.Union(
  [Type.Literal('weighted_random'), Type.Literal('round_robin'), Type.Literal('consistent_hash')],
  { default: 'weighted_random', description: 'consistent_hash: by path and query of the request.' },
);

/** Replaced as a whole when originSettings are given: omitted ones go back to their defaults. */
const replacedFields = {
  policy,
  tlsVerify: Type.Boolean({ default: true, description: 'Whether HTTPS origins must present a valid certificate.' }),
  websocket: Type.Boolean({ default: true }),
  keepalive: Type.Boolean({ default: true, description: 'Whether connections to origins are reused.' }),
  maxFails: Type.Integer({
    minimum: 1,
    maximum: 100,
    default: 3,
    description: 'Consecutive failures after which an origin is down.',
  }),
  recoverySeconds: Type.Integer({
    minimum: 1,
    maximum: 3600,
    default: 30,
    description: 'How long an origin stays down, in seconds.',
  }),
  connectTimeoutMs: Type.Integer({ minimum: 100, maximum: 120_000, default: 10_000 }),
  sendTimeoutMs: Type.Integer({ minimum: 100, maximum: 3_600_000, default: 60_000 }),
  readTimeoutMs: Type.Integer({ minimum: 100, maximum: 3_600_000, default: 60_000 }),
  keepaliveIdleSeconds: Type.Integer({ minimum: 1, maximum: 3600, default: 60 }),
  keepaliveMaxRequests: Type.Integer({ minimum: 1, maximum: 100_000, default: 1000 }),
};

const affinityFields = {
  enabled: Type.Boolean({ description: 'Whether a cookie keeps each visitor on one origin. Default false.' }),
  ttlSeconds: Type.Integer({
    minimum: 60,
    maximum: 604_800,
    description: 'Lifetime of the cookie in seconds, renewed after half of it. Default 3600.',
  }),
};
const affinity = {
  default: { enabled: false, ttlSeconds: 3600 },
  description:
    'Keeps each visitor on one origin of a group while that origin is healthy. On a site that enables it, nodes need ' +
    'the capability `session-affinity-v1`. An update keeps omitted fields.',
};

/** Keep their values when an update omits them. */
const keptFields = {
  activeHealthCheck: ActiveHealthCheck,
  sessionAffinity: Type.Object(affinityFields, affinity),
  tries: Type.Integer({ minimum: 1, maximum: 5, default: 3, description: 'Attempts per request.' }),
  statusRetry: Type.Boolean({
    default: true,
    description: 'Whether requests are retried after 502, 503 and 504 responses.',
  }),
  protocol: Type.Union([Type.Literal('http1'), Type.Literal('http2')], {
    default: 'http1',
    description:
      'HTTP version used with origins. http2: by ALPN with HTTPS origins, by prior knowledge with HTTP origins; an ' +
      'origin that does not speak HTTP/2 fails. WebSockets use HTTP/1.1. Nodes need the capability `origin-http2-v1`.',
  }),
  grpc: Type.Boolean({
    default: false,
    description:
      'Whether gRPC requests stream in both directions, without body limit, WAF and compression. Requires ' +
      '`protocol` http2.',
  }),
};

export const OriginSettings = Type.Object({ ...replacedFields, ...keptFields });
export type OriginSettings = Static<typeof OriginSettings>;
export type Origin = Static<typeof Origin>;

/** Input form. In an update the kept fields have no default: the validator must not fill them in. */
export function originSettingsInput(use: 'create' | 'update') {
  const sessionAffinity = Type.Partial(Type.Object(affinityFields), { ...affinity, additionalProperties: false });
  const kept =
    use === 'create'
      ? { ...keptFields, activeHealthCheck: ActiveHealthCheckInput, sessionAffinity }
      : {
          activeHealthCheck: withoutDefault(ActiveHealthCheckInput),
          sessionAffinity: withoutDefault(sessionAffinity),
          tries: withoutDefault(keptFields.tries),
          statusRetry: withoutDefault(keptFields.statusRetry),
          protocol: withoutDefault(keptFields.protocol),
          grpc: withoutDefault(keptFields.grpc),
        };
  return Type.Partial(Type.Object({ ...replacedFields, ...kept }), { additionalProperties: false });
}

function withoutDefault<T extends TSchema>(schema: T): T {
  const { default: _, ...rest } = schema as T & { default?: unknown };
  return rest as unknown as T;
}

export const DEFAULT_ORIGIN_SETTINGS: OriginSettings = Object.fromEntries(
  Object.entries({ ...replacedFields, ...keptFields }).map(([key, schema]) => [
    key,
    (schema as TSchema & { default?: unknown }).default,
  ]),
) as OriginSettings;

/** Charsets that a site can announce. */
export const CHARSETS = [
  'off',
  'utf-8',
  'gbk',
  'gb18030',
  'gb2312',
  'big5',
  'iso-8859-1',
  'shift_jis',
  'euc-kr',
] as const;

const charsetFields = {
  name: OneOf(CHARSETS, {
    description: '`charset` of the `Content-Type` header; off: headers stay unchanged. Default off.',
  }),
  force: Type.Boolean({ description: 'Whether the charset replaces that of the origin. Default false.' }),
  uppercase: Type.Boolean({ description: 'Whether the name is sent in upper case. Default false.' }),
};
const charset = {
  description:
    'Charset in the `Content-Type` header of text/*, application/javascript, application/json and application/xml ' +
    'responses from the origin. Bodies are not converted.',
};

export const ContentSettings = Type.Object({
  charset: Type.Object(charsetFields, charset),
  requestBodyLimit: Type.Integer({
    minimum: 0,
    maximum: 10_737_418_240,
    description: 'Maximum request body size in bytes; 0: unlimited. Default 104857600.',
  }),
  pathNormalization: Type.Boolean({
    description:
      'Whether rules and the origin get the same path: unreserved characters decoded, dot segments removed ' +
      '(RFC 3986). Ambiguous paths get 400. Default for a new site: true; sites from before the setting have ' +
      'false.',
  }),
  requestBuffering: Type.Boolean({
    description:
      'Whether nodes gather a request body, up to 16 MiB, before they connect to an origin. Off: bodies are sent ' +
      'as they arrive, and the WAF does not inspect them. Default true; an update that omits it keeps it.',
  }),
});
export type ContentSettings = Static<typeof ContentSettings>;

/** Input form: an omitted field of an update keeps its value, also inside `charset`. */
export const ContentSettingsInput = Type.Partial(
  Type.Object({
    ...ContentSettings.properties,
    charset: Type.Partial(Type.Object(charsetFields), { ...charset, additionalProperties: false }),
  }),
  { additionalProperties: false },
);

export const DEFAULT_CONTENT_SETTINGS: ContentSettings = {
  charset: { name: 'off', force: false, uppercase: false },
  requestBodyLimit: 104_857_600,
  pathNormalization: true,
  requestBuffering: true,
};
