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
    description: `Lines of its header; at most ${MAX_TRIED_HEADER_BYTES} bytes in all. X-Svc-… and Host are left out.`,
  },
);
const plain = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ maxLength, pattern: '^[\\x20-\\x7e]*$', description }));
const unknown = 'Without it rules that read it are not decided.';

const request = {
  method: Type.Optional(Type.String({ pattern: '^[A-Z]{1,32}$', default: 'GET' })),
  url: Type.String({
    maxLength: 8192,
    pattern: '^https?://[^\\u0000-\\u0020\\u007f]+$',
    examples: ['https://www.example.com/shop?page=2'],
    description: 'What is asked for, with scheme and host. What follows # is not sent.',
  }),
  version: Type.Optional({ ...OneOf(HTTP_VERSIONS), default: 'HTTP/1.1' }),
  headers: Type.Optional(headers),
  address: Type.String({ maxLength: 45, examples: ['192.0.2.1'], description: 'IP address of the visitor.' }),
  peer: Type.Optional(
    Type.String({ maxLength: 45, description: 'IP address of who is connected; without it that of the visitor.' }),
  ),
  at: Type.Optional({ ...Timestamp, description: 'When it arrives; without it now. ISO 8601, UTC.' }),
  bodySize: Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: 'Of its body, in bytes.' }),
  ),
  passLevel: Type.Optional({ ...Level, default: 'normal', description: 'What the visitor has passed already.' }),
  ja4: plain(64, `TLS fingerprint, which plain HTTP has not. ${unknown}`),
  country: Type.Optional(
    Type.String({ pattern: '^([A-Z]{2})?$', description: `Country of the address; empty for none. ${unknown}` }),
  ),
  subdivision: plain(64, `Part of that country; empty for none. ${unknown}`),
  asnum: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 4_294_967_295,
      description: `Number of the autonomous system of the address; 0 for none. ${unknown}`,
    }),
  ),
  asName: Type.Optional(
    Type.String({ maxLength: 256, description: `Name of that autonomous system; empty for none. ${unknown}` }),
  ),
};

const response = {
  status: Type.Integer({ minimum: 100, maximum: 599 }),
  headers: Type.Optional(headers),
  cacheStatus: plain(16, `What the cache says of it, for example HIT. ${unknown}`),
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
    summary:
      'Tells what rules make of a request that is made up, in every phase. Nothing is saved, counted or asked for.',
    input: Input({
      id: Id,
      request: TriedRequest,
      response: Type.Optional({
        ...TriedResponse,
        description: 'What the cache or an origin answers. Without it the phases of the response are left out.',
      }),
      rules: Type.Optional(
        Type.Array(RuleInput, {
          maxItems: MAX_SITE_RULES,
          description: 'Rules in the place of those that the site has, for example before they are saved.',
        }),
      ),
      platformRules: Type.Optional(
        Type.Array(RuleInput, {
          maxItems: MAX_PLATFORM_RULES,
          description: 'Rules in the place of those of the platform.',
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
