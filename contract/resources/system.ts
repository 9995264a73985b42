import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input } from '../scalars/common.ts';

export const Email = Type.String({ format: 'email', maxLength: 254 });
export const Password = Type.String({
  minLength: 12,
  maxLength: 128,
  description: 'Password of 12 to 128 characters.',
});

/** The edge's program being built by a launcher on the console's machine. */
export const EdgeBuild = Type.Object({
  state: Type.Union([Type.Literal('building'), Type.Literal('failed')]),
  packages: Type.Integer({ minimum: 0, description: 'Number of packages compiled so far.' }),
  startedAt: Type.String({ format: 'date-time' }),
});

export const SystemStatus = Type.Object({
  initialized: Type.Boolean({ description: 'Whether the operator account exists.' }),
  version: Type.String(),
  publicUrl: Type.String({
    description: 'Public URL of the console; passkeys and cookies are bound to it.',
  }),
  edgeBuild: Type.Optional(EdgeBuild),
});

export const system = resource('system', {
  status: procedure({
    method: 'GET',
    path: '/system/status',
    summary: 'Returns whether the console is set up, its version and its public URL.',
    input: Input({}),
    output: SystemStatus,
    status: 200,
    access: 'public',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  setup: procedure({
    method: 'POST',
    path: '/system/setup',
    summary: 'Creates the operator and the first cluster with the setup token from the log. Works once.',
    input: Input({
      setupToken: Type.String({ minLength: 1, maxLength: 200 }),
      name: Type.String({ minLength: 1, maxLength: 100 }),
      email: Email,
      password: Password,
    }),
    output: Type.Object({ userId: Id }),
    status: 200,
    access: 'public',
    readOnly: false,
    audit: 'system.setup',
    idempotency: 'accepted',
    errors: ['SETUP_DONE', 'SETUP_IN_PROGRESS', 'SETUP_TOKEN_INVALID', 'SIGN_IN_RATE_LIMITED'],
  }),
});
