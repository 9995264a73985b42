import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const AccessKeyScope = Type.Union([Type.Literal('read'), Type.Literal('readwrite')], {
  description: 'read: GET procedures and rule validation only.',
});

export const AccessKey = Type.Object({
  id: Id,
  name: Type.String(),
  prefix: Type.String({ description: 'First characters of the key, to tell keys apart.' }),
  scope: AccessKeyScope,
  createdAt: Timestamp,
  lastUsedAt: Nullable(Timestamp),
  revokedAt: Nullable(Timestamp),
});

export const accessKeys = resource('accessKeys', {
  list: procedure({
    method: 'GET',
    path: '/access-keys',
    summary: 'Lists access keys, newest first, revoked ones included.',
    input: Input({ ...PageQuery(50) }),
    output: Page(AccessKey),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  create: procedure({
    method: 'POST',
    path: '/access-keys',
    summary: 'Creates an access key; its secret is answered once.',
    input: Input({
      name: Type.String({ minLength: 1, maxLength: 64, pattern: '\\S', description: 'Not only blanks.' }),
      scope: Type.Optional({ ...AccessKeyScope, default: 'readwrite' }),
    }),
    output: Type.Object({
      key: AccessKey,
      secret: Type.String({ description: 'The key itself, answered once; prefix ewk_.' }),
    }),
    status: 201,
    access: 'session',
    readOnly: false,
    audit: 'api_key.create',
    idempotency: 'refused',
    errors: ['ACCESS_KEY_SESSION_REQUIRED'],
  }),
  revoke: procedure({
    method: 'DELETE',
    path: '/access-keys/{id}',
    summary: 'Revokes an access key; it stays listed.',
    input: Input({ id: Id }),
    output: AccessKey,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'api_key.revoke',
    idempotency: 'accepted',
    errors: ['ACCESS_KEY_NOT_FOUND'],
  }),
});
