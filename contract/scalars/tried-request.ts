// A made-up request to a site, and a response to it, that somebody wants to try rules with.
import Type, { type Static } from 'typebox';
import { Level } from './challenge.ts';
import { Input, OneOf, Timestamp } from './common.ts';

export const MAX_TRIED_HEADERS = 100;
/** Names and values of all headers, as nodes take them. */
export const MAX_TRIED_HEADER_BYTES = 32_768;
export const HTTP_VERSIONS = ['HTTP/1.0', 'HTTP/1.1', 'HTTP/2.0', 'HTTP/3.0'] as const;

export const TriedHeaders = Type.Array(
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
  headers: Type.Optional(TriedHeaders),
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
  headers: Type.Optional(TriedHeaders),
  cacheStatus: plain(16, `Cache status, for example HIT. ${unknown}`),
};

export const TriedRequest = Input(request);
export const TriedResponse = Input(response);
export type TriedRequest = Static<typeof TriedRequest>;
export type TriedResponse = Static<typeof TriedResponse>;
