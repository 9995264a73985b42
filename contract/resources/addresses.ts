import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Level } from '../scalars/challenge.ts';
import { Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { MAX_IP_LISTS } from './ip-lists.ts';

/** Most of each that a dossier names. */
export const DOSSIER_BANS = 20;
/** As many as there can be: one that decides is never left out. */
export const DOSSIER_LISTS = MAX_IP_LISTS;
export const DOSSIER_EVENTS = 20;
export const DOSSIER_SITES = 20;
export const DOSSIER_CLUSTERS = 100;
/** Addresses that are located at once: more than a page of any list has. */
export const MAX_LOCATED = 200;
/** Hours of its attacks that a dossier counts. */
export const DOSSIER_HOURS = 24;

/** What a request meets, in the order in which edges decide: the first that applies. */
export const OUTCOMES = ['dropped', 'disabled', 'banned', 'blocked', 'challenged', 'passes'] as const;

const BanOfAddress = Type.Object({
  id: Id,
  cidr: Type.String({ description: 'Canonical CIDR, always with a prefix length.' }),
  scope: OneOf(['site', 'platform']),
  siteId: Nullable(Id),
  siteName: Nullable(Type.String()),
  reason: Type.String(),
  source: OneOf(['manual', 'auto']),
  by: Nullable(Type.String({ description: 'Name of the operator, key or node that created the ban.' })),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  liftedAt: { ...Nullable(Timestamp), description: 'Time at which the ban was lifted before it expired; else null.' },
  distributed: Type.Boolean({
    description: 'Whether all nodes receive the ban; if not, only the node that created it enforces it.',
  }),
  covers: Type.Boolean({ description: 'Whether the ban covers the whole queried range or only a part.' }),
});

const ListOfAddress = Type.Object({
  id: Id,
  name: Type.String(),
  kind: OneOf(['collection', 'allow', 'block'], {
    description: 'allow and block: in force on all sites; collection: in force where rules name the list.',
  }),
  entry: Type.String({ description: 'The widest entry of the list that covers or lies inside the queried range.' }),
  covers: Type.Boolean({ description: 'Whether the entry covers the whole queried range or only a part.' }),
});

const verdict = {
  outcome: OneOf(OUTCOMES, {
    description:
      'dropped: every online node drops the packets in the kernel. disabled: 503, the site is disabled. ' +
      'banned: 403 from a ban. blocked: 403 from a block list. challenged: the client must pass a ' +
      'challenge, unless it has a pass. passes: the request is let through.',
  }),
  ban: {
    ...Nullable(Type.Object({ id: Id, cidr: Type.String(), scope: OneOf(['site', 'platform']), expiresAt: Timestamp })),
    description: 'The ban that decides, with the outcomes `dropped` and `banned`.',
  },
  list: {
    ...Nullable(Type.Object({ id: Id, name: Type.String(), entry: Type.String() })),
    description: 'The block list that decides; with the outcome `passes`, the allow list that exempts the address.',
  },
  level: { ...Level, description: 'Challenge level; `normal` with every outcome other than `challenged`.' },
  asks: {
    ...Nullable(OneOf(['platform', 'site', 'load'])),
    description:
      'Source of the challenge: Under Attack on all sites (platform), on this site (site), or its level ' +
      'under load (load).',
  },
  kernelNodes: Type.Integer({ minimum: 0, description: 'Online nodes that drop the packets in the kernel.' }),
  nodes: Type.Integer({ minimum: 0, description: 'Online nodes considered.' }),
  trustedProxy: Type.Boolean({
    description: 'Whether the cluster trusts the address to name clients. No ban applies to a trusted proxy.',
  }),
};

const EventOfAddress = Type.Object({
  id: Id,
  siteId: Id,
  siteName: Nullable(Type.String({ description: 'null: the site was deleted.' })),
  node: Nullable(Type.Object({ id: Id, name: Type.String() })),
  occurredAt: Timestamp,
  level: Level,
  metric: Nullable(Type.String()),
  observed: Nullable(Type.Number()),
  threshold: Nullable(Type.Number()),
});

const AddressLocation = Type.Object({
  country: {
    ...Nullable(Type.String()),
    description: 'ISO code of the country; null: not known.',
  },
  asn: { ...Nullable(Type.Integer({ minimum: 1 })), description: 'Number of the autonomous system; null: not known.' },
  asName: { ...Nullable(Type.String()), description: 'Name of the autonomous system; null: not known.' },
});
export type AddressLocation = Static<typeof AddressLocation>;

const AttackOfAddress = Type.Object({
  id: Id,
  siteId: Id,
  siteName: Nullable(Type.String({ description: 'null: the site was deleted.' })),
  node: Nullable(Type.Object({ id: Id, name: Type.String() })),
  occurredAt: Timestamp,
  requestId: Type.String(),
  method: Type.String(),
  path: Type.String(),
  score: Type.Integer({ minimum: 0 }),
  threshold: Type.Integer({ minimum: 0 }),
  blocked: Type.Boolean(),
  rules: Type.Array(Type.Integer(), { description: 'Rules of the WAF that matched, at most 16.' }),
});

const HourlyCounts = (description: string) =>
  Type.Array(Type.Integer({ minimum: 0 }), { description: `${description} ${DOSSIER_HOURS} hours.` });

export const AddressDossier = Type.Object({
  address: Type.String({ description: 'Canonical form: a single address without, a range with its prefix length.' }),
  cidr: Type.String({ description: 'Canonical CIDR, always with a prefix length.' }),
  single: Type.Boolean({ description: 'Whether this is one address. For a range, outcomes apply to the whole range.' }),
  clusters: Type.Array(Type.Object({ clusterId: Id, clusterName: Type.String(), ...verdict }), {
    description: `Outcome of a request now, per cluster, at a site without settings of its own; at most ${DOSSIER_CLUSTERS}.`,
  }),
  sites: Type.Array(
    Type.Object({
      siteId: Id,
      siteName: Type.String(),
      clusterId: Id,
      clusterName: Type.String(),
      seenAt: {
        ...Nullable(Timestamp),
        description: 'Time of the latest ban, event or heavy-address report for the site.',
      },
      ...verdict,
    }),
    {
      description:
        'Outcome now at the queried site and at sites where the address was seen, latest first; at most ' +
        `${DOSSIER_SITES}.`,
    },
  ),
  bans: Type.Object(
    { items: Type.Array(BanOfAddress), total: Type.Integer({ minimum: 0 }) },
    {
      description: `Active bans that cover the address or range or lie inside it, newest first; at most ${DOSSIER_BANS}.`,
    },
  ),
  pastBans: Type.Array(BanOfAddress, {
    description: `Lifted and expired bans, kept for 1 hour after their end; at most ${DOSSIER_BANS}.`,
  }),
  lists: Type.Array(ListOfAddress, {
    description:
      'IP lists with an entry that covers the address or range or lies inside it: allow, block, then ' +
      `others; at most ${DOSSIER_LISTS}.`,
  }),
  events: Type.Array(EventOfAddress, {
    description:
      `Newest security events of the address on all sites, at most ${DOSSIER_EVENTS}. Nodes report clients ` +
      'as IPv4 addresses or IPv6 /64, so wider ranges have none.',
  }),
  location: {
    ...AddressLocation,
    description: 'Country and network by the GeoIP databases of the console; of a range, of its first address.',
  },
  attacks: Type.Object(
    {
      from: { ...Timestamp, description: 'Start of the first hour.' },
      matched: HourlyCounts(
        'Requests that matched WAF rules, by hour, oldest first; the last hour is the running one.',
      ),
      blocked: HourlyCounts('Of them, requests that the WAF blocked.'),
      items: Type.Array(AttackOfAddress, { description: `The newest, at most ${DOSSIER_EVENTS}.` }),
    },
    {
      description:
        'WAF events of a single address on all sites, of the last 24 hours at most; nodes report some of the requests ' +
        'that matched. Of the newest 10,000.',
    },
  ),
});
export type AddressDossier = Static<typeof AddressDossier>;

export const addresses = resource('addresses', {
  get: procedure({
    method: 'GET',
    path: '/addresses/{address}',
    summary: 'Returns the bans, lists and events of an address or range, and the outcome of a request from it now.',
    input: Input({
      address: Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'IPv4 or IPv6 address; for a range, its first address.',
      }),
      prefix: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 128,
          description: 'Prefix length of the range in bits; if omitted, a single address.',
        }),
      ),
      siteId: Type.Optional({ ...Id, description: 'A site to include in `sites`.' }),
    }),
    output: AddressDossier,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  locate: procedure({
    method: 'GET',
    path: '/address-locations',
    summary: 'Returns country and network of up to 200 addresses, by the GeoIP databases of the console.',
    input: Input({
      addresses: Type.Array(Type.String({ maxLength: 64, pattern: '^(?=.*[.:].*[.:])[0-9A-Fa-f.:/]+$' }), {
        minItems: 1,
        maxItems: MAX_LOCATED,
        description: 'IPv4 or IPv6 addresses, or ranges, of which the first address counts; separated by commas.',
      }),
    }),
    output: Type.Object({
      available: Type.Boolean({ description: 'Whether the console has a GeoIP database.' }),
      locations: Type.Array(Type.Object({ address: Type.String(), ...AddressLocation.properties }), {
        description: 'One for each address of which something is known, as it was given.',
      }),
    }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
