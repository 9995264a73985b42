import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const AccessKeyScope = Type.Union([Type.Literal('read'), Type.Literal('readwrite')], {
  description: 'read: GET procedures and rule validation only; readwrite: all procedures for operators.',
});

export const AccessKey = Type.Object({
  id: Id,
  name: Type.String(),
  prefix: Type.String({ description: 'First characters of the key, for recognition.' }),
  scope: AccessKeyScope,
  state: OneOf(['active', 'revoked'], { description: 'revoked: requests with the key receive 401.' }),
  createdAt: Timestamp,
  lastUsedAt: Nullable(Timestamp),
  revokedAt: Nullable(Timestamp),
});

export const accessKeys = resource('accessKeys', {
  list: procedure({
    method: 'GET',
    path: '/access-keys',
    summary: 'Lists access keys, newest first, including revoked ones.',
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
    summary: 'Creates an access key and returns its secret once.',
    input: Input({
      name: Type.String({
        minLength: 1,
        maxLength: 64,
        pattern: '\\S',
        description: 'At least one character that is not a space.',
      }),
      scope: Type.Optional({ ...AccessKeyScope, default: 'readwrite' }),
    }),
    output: Type.Object({
      key: AccessKey,
      secret: Type.String({ description: 'The key itself, returned only here; prefix `ewk_`.' }),
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
    summary: 'Revokes an access key; it stays in the list.',
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
