import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, Timestamp } from '../scalars/common.ts';

export const EnrollmentWarning = Type.Union([
  Type.Literal('console_url_local'),
  Type.Literal('console_url_private'),
  Type.Literal('console_url_insecure'),
  Type.Literal('node_api_url_local'),
  Type.Literal('node_api_url_private'),
  Type.Literal('node_package_missing'),
]);

export const NewEnrollmentToken = Type.Object({
  tokenId: Id,
  token: Type.String({ description: 'One-time token, returned only here; prefix `ewt_`.' }),
  expiresAt: Timestamp,
  serverUrl: Type.String({ description: 'URL of the node channel.' }),
  caSha256: Type.String({
    description: 'SHA-256 of the internal CA certificate (DER) in hexadecimal; the node pins it.',
  }),
  installCommand: Type.String({
    description: 'Shell command that installs the node software and enrolls the machine. Run it as root.',
  }),
  warnings: Type.Array(EnrollmentWarning),
});

export const EnrollmentProgress = Type.Object({
  tokenId: Id,
  clusterId: Id,
  expiresAt: Timestamp,
  usedAt: Nullable(Timestamp),
  node: Nullable(
    Type.Object({
      id: Id,
      name: Type.String(),
      online: Type.Boolean(),
      applied: Type.Boolean({ description: 'Whether the node runs its target revision.' }),
      authError: Nullable(Type.String()),
    }),
  ),
});

export const enrollmentTokens = resource('enrollmentTokens', {
  create: procedure({
    method: 'POST',
    path: '/enrollment-tokens',
    summary: 'Creates a one-time token that enrolls one node in a cluster.',
    input: Input({
      clusterId: Id,
      nodeGroupId: Type.Optional(Nullable(Id)),
      nodeName: Type.Optional(
        Nullable(
          Type.String({
            minLength: 1,
            maxLength: 64,
            pattern: '^\\S(.*\\S)?$',
            description: 'Name of the node. Default: its host name.',
          }),
        ),
      ),
      ttlMinutes: Type.Optional(Type.Integer({ minimum: 5, maximum: 10_080, default: 60 })),
    }),
    output: NewEnrollmentToken,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'enrollment_token.create',
    idempotency: 'refused',
    errors: ['CLUSTER_NOT_FOUND', 'NODE_GROUP_NOT_FOUND', 'NODE_GROUP_CLUSTER_MISMATCH'],
  }),
  get: procedure({
    method: 'GET',
    path: '/enrollment-tokens/{id}',
    summary: 'Returns the progress of the enrollment with a token.',
    input: Input({ id: Id }),
    output: EnrollmentProgress,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['ENROLLMENT_TOKEN_NOT_FOUND'],
  }),
});
