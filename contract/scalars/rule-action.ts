// What a rule does with the requests that its condition is about (specification: Rules). Each kind has its fields, and
// phases in which it can stand.
import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { MAX_EXPRESSION } from '../expression/limits.ts';
import type { Phase } from '../expression/phases.ts';
import { ChallengeType } from './challenge.ts';
import { MAX_HOST_HEADER_BYTES } from './host-header.ts';
import { MAX_HOST_NAME_LENGTH } from './host-name.ts';

export const MAX_QUERY_EDITS = 16;
const MAX_TIMEOUT_MS = 3_600_000;

const PARAMETER_NAME = '^[A-Za-z0-9._~-]{1,64}$';
const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}";
const OF_REQUEST_HEADER = 'http.request.headers.';

const status = <T extends number>(codes: readonly T[], fallback: T) =>
  Type.Unsafe<T>(
    Type.Union(
      codes.map((code) => Type.Literal(code)),
      { default: fallback },
    ),
  );
const on = (fallback: boolean, description: string) => Type.Boolean({ default: fallback, description });
/** A value expression; "" is none. */
const computed = (description: string) => Type.String({ maxLength: MAX_EXPRESSION, default: '', description });

const queryParameter = {
  name: Type.String({ pattern: PARAMETER_NAME }),
  value: Type.String({ pattern: '^[\\x20-\\x7e]{0,256}$', default: '', description: 'Printable ASCII.' }),
  expression: computed('Expression that computes the value; `value` is empty then.'),
};

/** What a redirect and a rewrite have in common; `complete` says whether fields with a default must be there. */
const target = (preserveQuery: boolean, complete: boolean) => ({
  value: Type.String({
    maxLength: 4096,
    default: '',
    description: 'Target of the redirect or rewrite; exactly one of `value` and `target` is not empty.',
  }),
  target: computed('Value expression that computes the target.'),
  preserveQuery: on(preserveQuery, 'Whether the query of the request is kept.'),
  setQuery: Type.Array(object(queryParameter, complete), {
    maxItems: MAX_QUERY_EDITS,
    default: [],
    description: 'Parameters that replace those with the same name; each name once.',
  }),
  removeQuery: Type.Array(Type.String({ pattern: PARAMETER_NAME }), {
    maxItems: MAX_QUERY_EDITS,
    uniqueItems: true,
    default: [],
    description: 'Names of parameters to remove; none of `setQuery`.',
  }),
});

const header = {
  header: Type.String({
    pattern: `^${TOKEN}$`,
    description: 'Header name, stored in lower case. Headers that delivery or sign-in needs are not allowed.',
  }),
  value: Type.String({
    maxLength: 4096,
    pattern: '^[^\\u0000-\\u001f\\u007f]*$',
    default: '',
    description: 'Value of the header; empty with `expression` or `remove`.',
  }),
  expression: computed(
    'Expression that computes the value. Results longer than 4096 bytes or with a control character are not set.',
  ),
  remove: on(false, 'Whether the header is removed.'),
};

const timeout = (minimum: number, maximum: number) => Type.Optional(Type.Integer({ minimum, maximum }));
const config = {
  cacheBypass: Type.Optional(Type.Boolean()),
  forceHttps: Type.Optional(Type.Boolean()),
  gzip: Type.Optional(Type.Boolean()),
  requestBodyLimit: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10_737_418_240,
      description: 'Maximum request body size in bytes; 0: unlimited.',
    }),
  ),
  brotli: Type.Optional(Type.Boolean()),
  zstd: Type.Optional(Type.Boolean()),
  websocket: Type.Optional(Type.Boolean()),
  underAttack: Type.Optional(Type.Boolean()),
  ccEnabled: Type.Optional(Type.Boolean()),
  ccMaxLevel: Type.Optional(ChallengeType),
  originConnectTimeoutMs: timeout(100, 120_000),
  originSendTimeoutMs: timeout(100, MAX_TIMEOUT_MS),
  originReadTimeoutMs: timeout(100, MAX_TIMEOUT_MS),
  logSampleRate: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 10_000, description: 'Sampled requests per 10,000.' }),
  ),
};

/** Fields of the config action that can stand in the phase cache as well. */
export const CACHE_PHASE_CONFIG: readonly string[] = ['cacheBypass', 'forceHttps', 'gzip', 'requestBodyLimit'];

const rateLimit = {
  limit: Type.Integer({ minimum: 1, maximum: 100_000, description: 'Number of requests in a window.' }),
  windowSeconds: Type.Integer({ minimum: 1, maximum: 3600 }),
  key: Type.String({
    pattern: `^(ip\\.src|http\\.host|tls\\.ja4|http\\.request\\.headers\\.${TOKEN})$`,
    description: `Key of the counter: ip.src, http.host, tls.ja4 or ${OF_REQUEST_HEADER}NAME, stored in lower case.`,
  }),
  statusCode: status([429, 403], 429),
};

const origin = {
  originGroup: Type.String({
    pattern: '^[a-z0-9_-]{0,32}$',
    default: '',
    description: 'Origin group of the site; empty: no override. Always empty in platform rules.',
  }),
  hostHeader: Type.String({
    maxLength: MAX_HOST_HEADER_BYTES,
    default: '',
    description: 'Host name or IP address with an optional port; empty: no override.',
  }),
  sni: Type.String({
    maxLength: MAX_HOST_NAME_LENGTH,
    default: '',
    description: 'TLS server name; empty: no override.',
  }),
  port: Type.Integer({ minimum: 0, maximum: 65_535, default: 0, description: 'Port of the origin; 0: no override.' }),
};

const Coding = Type.Union([Type.Literal('zstd'), Type.Literal('br'), Type.Literal('gzip')]);

/** Every kind, with its fields where those with a default must be there or may be left out. */
const kinds = (complete: boolean) => ({
  block: fieldsOf('block', { statusCode: status([403, 451], 403) }, complete),
  log: fieldsOf('log', {}, complete),
  allow: fieldsOf('allow', {}, complete),
  challenge: fieldsOf('challenge', { type: { ...ChallengeType, default: 'js' } }, complete),
  redirect: fieldsOf(
    'redirect',
    { ...target(false, complete), statusCode: status([301, 302, 303, 307, 308], 301) },
    complete,
  ),
  rewrite: fieldsOf('rewrite', target(true, complete), complete),
  request_header: fieldsOf('request_header', header, complete),
  response_header: fieldsOf(
    'response_header',
    {
      ...header,
      append: on(false, 'Whether the header is added to existing lines instead of replacing them; not with `remove`.'),
    },
    complete,
  ),
  config: fieldsOf('config', config, complete),
  rate_limit: fieldsOf('rate_limit', rateLimit, complete),
  origin: fieldsOf('origin', origin, complete),
  compression: fieldsOf(
    'compression',
    {
      algorithms: Type.Array(Coding, {
        maxItems: 3,
        uniqueItems: true,
        description: 'Algorithms in order of preference; none: no compression.',
      }),
    },
    complete,
  ),
});

function fieldsOf<K extends string, P extends TProperties>(kind: K, fields: P, complete: boolean) {
  return object({ kind: Type.Literal(kind), ...fields }, complete);
}

/** Whoever handles an input has its fields with a default filled in: they are missing only on the way to it. */
function object<P extends TProperties>(fields: P, complete: boolean) {
  if (complete) return Type.Object(fields, { additionalProperties: false });
  const given = Object.entries(fields).map(([key, one]) => [key, 'default' in one ? Type.Optional(one) : one]);
  return Type.Object(Object.fromEntries(given) as P, { additionalProperties: false });
}

const ACTIONS = kinds(true);
const INPUTS = kinds(false);

export type ActionKind = keyof typeof ACTIONS;
export const ACTION_KINDS = Object.keys(ACTIONS) as ActionKind[];

/** The object of each kind. */
export const RULE_ACTIONS = ACTIONS;
export type ActionOf<K extends ActionKind> = Static<(typeof ACTIONS)[K]>;
export type RuleAction = { [K in ActionKind]: ActionOf<K> }[ActionKind];

const union = (of: Record<ActionKind, TSchema>) =>
  Type.Unsafe<RuleAction>(
    Type.Union(Object.values(of), { description: 'Action of the rule; `kind` determines its fields.' }),
  );

export const RuleAction = union(ACTIONS);
export const RuleActionInput = union(INPUTS);

/** Phases in which an action can stand. */
export const ACTION_PHASES: Readonly<Record<ActionKind, readonly Phase[]>> = {
  block: ['waf-custom'],
  log: ['waf-custom'],
  allow: ['waf-custom'],
  challenge: ['waf-custom'],
  redirect: ['redirect'],
  rewrite: ['request-transform'],
  request_header: ['request-transform', 'origin'],
  response_header: ['response-transform'],
  config: ['config', 'cache'],
  rate_limit: ['ratelimit'],
  origin: ['origin'],
  compression: ['compression'],
};

/** Name of the request header that a rate limit counts by, in lower case; null for its other keys. */
export function headerOfKey(key: string): string | null {
  return key.startsWith(OF_REQUEST_HEADER) ? key.slice(OF_REQUEST_HEADER.length).toLowerCase() : null;
}
