// A test of an origin from the console or from a node: what a request to it meets, step by step.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf } from '../scalars/common.ts';
import { OriginInput, OriginSettings } from './site-origins.ts';

/** Tests of one user in a minute, at most. */
export const ORIGIN_TESTS_A_MINUTE = 20;
/** Of a whole test. */
export const ORIGIN_TEST_SECONDS = 10;
/** The same from a node; the ways to it and back come on top. */
export const NODE_TEST_SECONDS = 8;
const MAX_PATH = 1024;

export const ORIGIN_TEST_STEPS = ['address', 'connect', 'tls', 'response'] as const;
export const ORIGIN_TEST_FAILURES = [
  'not_found',
  'forbidden',
  'refused',
  'unreachable',
  'timeout',
  'closed',
  'certificate_expired',
  'certificate_name',
  'certificate_untrusted',
  'handshake',
  'not_http2',
  'not_http',
] as const;

export const OriginTest = Type.Object({
  steps: Type.Array(
    Type.Object({
      step: OneOf(ORIGIN_TEST_STEPS, {
        description:
          'address: resolves the name and applies the address policy; connect: TCP; tls: only with `https`; response: ' +
          'one GET up to the headers of the response.',
      }),
      milliseconds: Type.Integer({ minimum: 0, description: 'Duration of the step in milliseconds.' }),
      failure: Nullable(OneOf(ORIGIN_TEST_FAILURES)),
    }),
    { minItems: 1, maxItems: 4, description: 'Steps in order, up to the first that failed.' },
  ),
  address: {
    ...Nullable(Type.String()),
    description: 'Address that was connected to, or that the address policy forbids; null: the name has none.',
  },
  range: { ...Nullable(Type.String()), description: 'Special-purpose range of a forbidden address.' },
  status: { ...Nullable(Type.Integer()), description: 'Status of the response.' },
});
export type OriginTest = Static<typeof OriginTest>;

const asked = {
  origin: OriginInput,
  host: Type.Optional(
    Type.String({
      maxLength: 1024,
      examples: ['shop.example.com'],
      description: '`Host` of the request if the origin has no host header. Default: the address of the origin.',
    }),
  ),
  path: Type.Optional(
    Type.String({
      maxLength: MAX_PATH,
      pattern: '^/[!-~]*$',
      default: '/',
      examples: ['/'],
      description: 'Path and query of the request.',
    }),
  ),
  tlsVerify: Type.Optional(OriginSettings.properties.tlsVerify),
  protocol: Type.Optional(OriginSettings.properties.protocol),
};

export const originTest = resource('sites', {
  tryOrigin: procedure({
    method: 'POST',
    path: '/origins/try',
    summary: `Tests an origin from the console, for at most ${ORIGIN_TEST_SECONDS} seconds.`,
    input: Input(asked),
    output: OriginTest,
    slow: true,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: ['ORIGIN_HOST_HEADER_INVALID', 'ORIGIN_TEST_LIMIT'],
  }),
  tryOriginFromNode: procedure({
    method: 'POST',
    path: '/nodes/{id}/origins/try',
    summary: `Tests an origin from a node, for at most ${NODE_TEST_SECONDS} seconds.`,
    input: Input({ id: Id, ...asked }),
    output: OriginTest,
    slow: true,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: [
      'NODE_CAPABILITY_REQUIRED',
      'NODE_NOT_FOUND',
      'NODE_OFFLINE',
      'NODE_TASK_FAILED',
      'ORIGIN_HOST_HEADER_INVALID',
      'ORIGIN_TEST_LIMIT',
    ],
  }),
});
