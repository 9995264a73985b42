import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Empty, ExpectedUpdatedAt, Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const MAX_IP_LISTS = 128;
export const MAX_LIST_ENTRIES = 10_000;
export const MAX_ENTRIES_IN_ALL = 50_000;

const Name = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$', description: 'Unique; stays as it is for good.' });
const Kind = Type.Union([Type.Literal('collection'), Type.Literal('allow'), Type.Literal('block')], {
  description:
    'collection: used by rules only; allow: exempt from block lists, bans and challenges on all sites; ' +
    'block: 403 on all sites.',
});
// Above the limit of a list, so that too many entries meet their own error; the body's size bounds them anyway.
const Entries = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 100_000,
  description: 'IP addresses and CIDRs; answered in canonical form, without duplicates, sorted.',
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
  name: Type.String({ description: 'As people know it.' }),
  site: Nullable(Type.Object({ id: Id, name: Type.String() }, { description: 'The site that it belongs to.' })),
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
    summary: 'Answers one IP list with its entries.',
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
    summary: 'Lists what refers to an IP list; its kind alone gives it an effect on all sites.',
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
    summary: 'Deletes an IP list that nothing refers to.',
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
