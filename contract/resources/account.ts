import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable } from '../scalars/common.ts';

export const Me = Type.Object({
  user: Type.Object({
    id: Id,
    name: Type.String(),
    email: Type.String({ description: 'Empty for a service account.' }),
    twoFactorEnabled: Type.Boolean(),
  }),
  serviceAccount: Nullable(Type.Object({ id: Id, name: Type.String(), scopes: Type.Array(Type.String()) })),
});

export const account = resource('account', {
  me: procedure({
    method: 'GET',
    path: '/me',
    summary: 'Returns the caller.',
    input: Input({}),
    output: Me,
    status: 200,
    access: { scope: null },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
