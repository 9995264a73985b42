import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Empty, ExpectedUpdatedAt, Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const MAX_IP_LISTS = 128;
export const MAX_LIST_ENTRIES = 10_000;
export const MAX_ENTRIES_IN_ALL = 50_000;

const Name = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$', description: 'Unique; cannot be changed later.' });
const Kind = Type.Union([Type.Literal('collection'), Type.Literal('allow'), Type.Literal('block')], {
  description:
    'collection: used by rules only; allow: exempt from block lists, bans and challenges on all sites; ' +
    'block: 403 on all sites.',
});
// Above the limit of a list, so that too many entries meet their own error; the body's size bounds them anyway.
const Entries = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 100_000,
  description: 'IP addresses and CIDRs; returned in canonical form, sorted, without duplicates.',
});

const summary = {
  id: Id,
  name: Name,
  kind: Kind,
  entryCount: Type.Integer({ minimum: 0 }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const IpListSummary = Type.Object(summary);
export const IpList = Type.Object({ ...summary, entries: Entries });

/** What can refer to a list by its name or id. */
export const IP_LIST_USER_KINDS = ['site_rule', 'platform_rule', 'cache_rule', 'l4_app'] as const;

/** One that refers to a list, which cannot be deleted before it stops. */
export const IpListUser = Type.Object({
  kind: OneOf(IP_LIST_USER_KINDS),
  id: Id,
  name: Type.String({ description: 'Display name of the rule or other user.' }),
  site: Nullable(Type.Object({ id: Id, name: Type.String() }, { description: 'Site of the user; null: platform.' })),
});

export const ipLists = resource('ipLists', {
  list: procedure({
    method: 'GET',
    path: '/ip-lists',
    summary: 'Lists IP lists by name, without their entries.',
    input: Input({ ...PageQuery(50) }),
    output: Page(IpListSummary),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  get: procedure({
    method: 'GET',
    path: '/ip-lists/{id}',
    summary: 'Returns an IP list with its entries.',
    input: Input({ id: Id }),
    output: IpList,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['IP_LIST_NOT_FOUND'],
  }),
  usage: procedure({
    method: 'GET',
    path: '/ip-lists/{id}/usage',
    summary:
      'Lists the rules that use an IP list. Lists of kind `allow` and `block` apply to all sites without a rule.',
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(IpListUser),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['IP_LIST_NOT_FOUND'],
  }),
  create: procedure({
    method: 'POST',
    path: '/ip-lists',
    summary: 'Creates an IP list and publishes it on every cluster.',
    input: Input({ name: Name, kind: Kind, entries: Entries }),
    output: IpList,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'ip_list.create',
    idempotency: 'accepted',
    errors: ['IP_LIST_NAME_TAKEN', 'IP_LIST_LIMIT'],
  }),
  update: procedure({
    method: 'PUT',
    path: '/ip-lists/{id}',
    summary: 'Replaces the entries and the kind of an IP list on every cluster.',
    input: Input({ id: Id, kind: Kind, entries: Entries, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: IpList,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'ip_list.update',
    idempotency: 'accepted',
    errors: ['IP_LIST_NOT_FOUND', 'IP_LIST_LIMIT', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/ip-lists/{id}',
    summary: 'Deletes an unused IP list.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'ip_list.delete',
    idempotency: 'accepted',
    errors: ['IP_LIST_NOT_FOUND', 'IP_LIST_IN_USE'],
  }),
});
