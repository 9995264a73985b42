// Machine identities: no password, passkey or session; what they may call is fixed by the contract (procedure.ts, Access).
import Type from 'typebox';
import { procedure, resource, SCOPES } from '../procedure.ts';
import {
  Empty,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  ONE_LINE,
  OneOf,
  Page,
  PageQuery,
  Timestamp,
} from '../scalars/common.ts';

export const MAX_SERVICE_ACCOUNT_NAME = 64;
/** Keys of one account that are not revoked. */
export const MAX_LIVE_KEYS = 50;
/** Keys shown of one account: the live ones, then the newest revoked ones. */
export const MAX_SHOWN_KEYS = 100;

const Name = Type.String({
  minLength: 1,
  maxLength: MAX_SERVICE_ACCOUNT_NAME,
  pattern: ONE_LINE,
});
const Scopes = Type.Array(OneOf(SCOPES), {
  uniqueItems: true,
  maxItems: SCOPES.length,
  description: 'Procedures that the account may call; returned in alphabetical order.',
});

export const ServiceAccountKey = Type.Object({
  id: Id,
  name: Type.String(),
  prefix: Type.String({ description: 'First characters of the key, for recognition.' }),
  createdAt: Timestamp,
  lastUsedAt: Nullable({ ...Timestamp, description: 'Time of the last use, to the minute.' }),
  revokedAt: Nullable(Timestamp),
});

export const ServiceAccount = Type.Object({
  id: Id,
  name: Type.String(),
  scopes: Scopes,
  enabled: Type.Boolean({ description: 'false: requests with keys of the account receive 401.' }),
  keys: Type.Array(ServiceAccountKey, {
    maxItems: MAX_SHOWN_KEYS,
    description: 'Newest first: every active key and the latest revoked ones.',
  }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

export const serviceAccounts = resource('serviceAccounts', {
  list: procedure({
    method: 'GET',
    path: '/service-accounts',
    summary: 'Lists service accounts by name, with their keys.',
    input: Input({ ...PageQuery(50) }),
    output: Page(ServiceAccount),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  create: procedure({
    method: 'POST',
    path: '/service-accounts',
    summary: 'Creates a service account without keys.',
    input: Input({
      name: { ...Name, description: 'Unique.' },
      scopes: Type.Optional({ ...Scopes, default: [] }),
      enabled: Type.Optional(Type.Boolean({ default: true })),
    }),
    output: ServiceAccount,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'service_account.create',
    idempotency: 'accepted',
    errors: ['SERVICE_ACCOUNT_NAME_TAKEN'],
  }),
  update: procedure({
    method: 'PUT',
    path: '/service-accounts/{id}',
    summary: 'Changes the given fields of a service account; its keys follow at once.',
    input: Input({
      id: Id,
      name: Type.Optional(Name),
      scopes: Type.Optional(Scopes),
      enabled: Type.Optional(Type.Boolean()),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: ServiceAccount,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'service_account.update',
    idempotency: 'accepted',
    errors: ['SERVICE_ACCOUNT_NOT_FOUND', 'SERVICE_ACCOUNT_NAME_TAKEN', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/service-accounts/{id}',
    summary: 'Deletes a service account and its keys.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'service_account.delete',
    idempotency: 'accepted',
    errors: ['SERVICE_ACCOUNT_NOT_FOUND'],
  }),
  createKey: procedure({
    method: 'POST',
    path: '/service-accounts/{id}/keys',
    summary: 'Creates a key of a service account and returns its secret once.',
    input: Input({
      id: Id,
      name: Type.Optional({ ...Name, description: 'Name for recognition. Default: the name of the account.' }),
    }),
    output: Type.Object({
      key: ServiceAccountKey,
      secret: Type.String({ description: 'The key itself, returned only here; prefix `ews_`.' }),
    }),
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'service_account.key_create',
    idempotency: 'refused',
    errors: ['SERVICE_ACCOUNT_NOT_FOUND', 'SERVICE_ACCOUNT_KEY_LIMIT'],
  }),
  revokeKey: procedure({
    method: 'POST',
    path: '/service-accounts/{id}/keys/{keyId}/revoke',
    summary: 'Revokes a key of a service account; it stays in the list.',
    input: Input({ id: Id, keyId: Id }),
    output: ServiceAccountKey,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'service_account.key_revoke',
    idempotency: 'accepted',
    errors: ['SERVICE_ACCOUNT_NOT_FOUND', 'SERVICE_ACCOUNT_KEY_NOT_FOUND'],
  }),
});
