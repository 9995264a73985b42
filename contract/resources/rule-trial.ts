import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Level } from '../scalars/challenge.ts';
import { Id, Input, OneOf, Timestamp } from '../scalars/common.ts';
import { MAX_PLATFORM_RULES, MAX_SITE_RULES, RuleInput } from '../scalars/rule.ts';
import { RuleTrace as RuleTraceSchema } from '../scalars/rule-trace.ts';

export const MAX_TRIED_HEADERS = 100;
/** Names and values of all headers, as nodes take them. */
export const MAX_TRIED_HEADER_BYTES = 32_768;
export const HTTP_VERSIONS = ['HTTP/1.0', 'HTTP/1.1', 'HTTP/2.0', 'HTTP/3.0'] as const;

const headers = Type.Array(
  Type.Object(
    {
      name: Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$" }),
      value: Type.String({ maxLength: 8192, pattern: '^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*$' }),
    },
    { additionalProperties: false },
  ),
  {
    maxItems: MAX_TRIED_HEADERS,
    default: [],
    description: `Header lines, at most ${MAX_TRIED_HEADER_BYTES} bytes in total. X-Svc-* and Host are ignored.`,
  },
);
const plain = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ maxLength, pattern: '^[\\x20-\\x7e]*$', description }));
const unknown = 'If omitted, rules that read it are not decided.';
const located =
  'If omitted, the value of the address in the GeoIP database of the console; without one, rules that read it are not decided.';

const request = {
  method: Type.Optional(Type.String({ pattern: '^[A-Z]{1,32}$', default: 'GET' })),
  url: Type.String({
    maxLength: 8192,
    pattern: '^https?://[^\\u0000-\\u0020\\u007f]+$',
    examples: ['https://www.example.com/shop?page=2'],
    description: 'Full URL with scheme and host. The part after # is not sent.',
  }),
  version: Type.Optional({ ...OneOf(HTTP_VERSIONS), default: 'HTTP/1.1' }),
  headers: Type.Optional(headers),
  address: Type.String({
    maxLength: 45,
    examples: ['192.0.2.1'],
    description: 'IP address of the client.',
  }),
  peer: Type.Optional(
    Type.String({ maxLength: 45, description: 'IP address of the connected peer. Default: the client address.' }),
  ),
  at: Type.Optional({ ...Timestamp, description: 'Arrival time. Default: now. ISO 8601, UTC.' }),
  bodySize: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 0,
      description: 'Size of the request body in bytes.',
    }),
  ),
  passLevel: Type.Optional({
    ...Level,
    default: 'normal',
    description: 'Highest challenge level that the client has passed.',
  }),
  ja4: plain(64, `TLS fingerprint; plain HTTP has none. ${unknown}`),
  country: Type.Optional(
    Type.String({ pattern: '^([A-Z]{2})?$', description: `Country code of the address; empty: none. ${located}` }),
  ),
  subdivision: plain(64, `Subdivision of the country; empty: none. ${unknown}`),
  asnum: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 4_294_967_295,
      description: `Autonomous system number of the address; 0: none. ${located}`,
    }),
  ),
  asName: Type.Optional(
    Type.String({ maxLength: 256, description: `Name of the autonomous system; empty: none. ${located}` }),
  ),
};

const response = {
  status: Type.Integer({ minimum: 100, maximum: 599 }),
  headers: Type.Optional(headers),
  cacheStatus: plain(16, `Cache status, for example HIT. ${unknown}`),
};

const TriedRequest = Input(request);
const TriedResponse = Input(response);
export type TriedRequest = Static<typeof TriedRequest>;
export type TriedResponse = Static<typeof TriedResponse>;

export const RuleTrace = RuleTraceSchema;

export const ruleTrial = resource('sites.rules', {
  try: procedure({
    method: 'POST',
    path: '/sites/{id}/rules/try',
    summary: 'Simulates rules on an invented request in every phase. Nothing is saved, counted or sent.',
    input: Input({
      id: Id,
      request: TriedRequest,
      response: Type.Optional({
        ...TriedResponse,
        description: 'Response of the cache or an origin. If omitted, the response phases are skipped.',
      }),
      rules: Type.Optional(
        Type.Array(RuleInput, {
          maxItems: MAX_SITE_RULES,
          description: 'Rules to try instead of those of the site, for example before saving them.',
        }),
      ),
      platformRules: Type.Optional(
        Type.Array(RuleInput, {
          maxItems: MAX_PLATFORM_RULES,
          description: 'Rules to try instead of those of the platform.',
        }),
      ),
    }),
    output: RuleTrace,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    bodyLimit: 24 * 1024 * 1024,
    errors: ['SITE_NOT_FOUND', 'RULE_INVALID', 'IP_LIST_REFERENCE_UNKNOWN', 'ORIGIN_HOST_HEADER_INVALID'],
  }),
});
