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

/** What a request meets, in the order in which edges decide: the first that applies. */
export const OUTCOMES = ['dropped', 'disabled', 'banned', 'blocked', 'challenged', 'passes'] as const;

const BanOfAddress = Type.Object({
  id: Id,
  cidr: Type.String({ description: 'Canonical, always with its prefix length.' }),
  scope: OneOf(['site', 'platform']),
  siteId: Nullable(Id),
  siteName: Nullable(Type.String()),
  reason: Type.String(),
  source: OneOf(['manual', 'auto']),
  by: Nullable(Type.String({ description: 'Name of who, or of the node that, made it.' })),
  createdAt: Timestamp,
  expiresAt: Timestamp,
  liftedAt: { ...Nullable(Timestamp), description: 'When it was lifted before its end; null else.' },
  distributed: Type.Boolean({ description: 'Whether all nodes receive it; else only the one that made it has it.' }),
  covers: Type.Boolean({ description: 'Whether it covers everything that was asked about, or only a part.' }),
});

const ListOfAddress = Type.Object({
  id: Id,
  name: Type.String(),
  kind: OneOf(['collection', 'allow', 'block'], {
    description: 'allow and block hold on all sites; collection where rules name it.',
  }),
  entry: Type.String({ description: 'The widest entry of the list that has to do with the address.' }),
  covers: Type.Boolean({ description: 'Whether the entry covers everything that was asked about, or only a part.' }),
});

const verdict = {
  outcome: OneOf(OUTCOMES, {
    description:
      'dropped: every online node drops its packets in the kernel; disabled: 503, the site is off; banned: 403 by a ban; ' +
      'blocked: 403 by a block list; challenged: has to pass a challenge first, unless it has a pass; passes: is let through.',
  }),
  ban: {
    ...Nullable(Type.Object({ id: Id, cidr: Type.String(), scope: OneOf(['site', 'platform']), expiresAt: Timestamp })),
    description: 'The ban that decides, with outcomes dropped and banned.',
  },
  list: {
    ...Nullable(Type.Object({ id: Id, name: Type.String(), entry: Type.String() })),
    description: 'The block list that decides; with passes the allow list that spares the address everything.',
  },
  level: { ...Level, description: 'What it is challenged with; normal with every other outcome.' },
  asks: {
    ...Nullable(OneOf(['platform', 'site', 'load'])),
    description: 'Who asks for the challenge: Under Attack of all sites, of the site, or its level under load.',
  },
  kernelNodes: Type.Integer({ minimum: 0, description: 'Online nodes that drop its packets in the kernel.' }),
  nodes: Type.Integer({ minimum: 0, description: 'Online nodes that could be asked.' }),
  trustedProxy: Type.Boolean({
    description: 'Whether the cluster trusts it to name clients: then no ban applies to it.',
  }),
};

const EventOfAddress = Type.Object({
  id: Id,
  siteId: Id,
  siteName: Nullable(Type.String({ description: 'null after the site is deleted.' })),
  node: Nullable(Type.Object({ id: Id, name: Type.String() })),
  occurredAt: Timestamp,
  level: Level,
  metric: Nullable(Type.String()),
  observed: Nullable(Type.Number()),
  threshold: Nullable(Type.Number()),
});

export const AddressDossier = Type.Object({
  address: Type.String({ description: 'Canonical: an address alone, a range with its prefix length.' }),
  cidr: Type.String({ description: 'Canonical, always with its prefix length.' }),
  single: Type.Boolean({ description: 'Whether it is one address. What a range meets is said of all of it alike.' }),
  clusters: Type.Array(Type.Object({ clusterId: Id, clusterName: Type.String(), ...verdict }), {
    description: `What a request meets now at a site that has nothing of its own, by cluster; at most ${DOSSIER_CLUSTERS}.`,
  }),
  sites: Type.Array(
    Type.Object({
      siteId: Id,
      siteName: Type.String(),
      clusterId: Id,
      clusterName: Type.String(),
      seenAt: { ...Nullable(Timestamp), description: 'When a ban, an event or a heavy address told of it last.' },
      ...verdict,
    }),
    {
      description: `What it meets now at the site asked about and at those where it was seen, latest first; at most ${DOSSIER_SITES}.`,
    },
  ),
  bans: Type.Object(
    { items: Type.Array(BanOfAddress), total: Type.Integer({ minimum: 0 }) },
    { description: `Active bans that cover it or lie inside it, newest first; at most ${DOSSIER_BANS} of them.` },
  ),
  pastBans: Type.Array(BanOfAddress, {
    description: `Lifted and expired ones, which are kept for an hour after their end; at most ${DOSSIER_BANS}.`,
  }),
  lists: Type.Array(ListOfAddress, {
    description: `IP lists with an entry that covers it or lies inside it: allow, block, then others; at most ${DOSSIER_LISTS}.`,
  }),
  events: Type.Array(EventOfAddress, {
    description:
      `Newest security events of it on all sites, at most ${DOSSIER_EVENTS}. Nodes name clients by IPv4 address or ` +
      'IPv6 /64, so there are none of wider ranges.',
  }),
});
export type AddressDossier = Static<typeof AddressDossier>;

export const addresses = resource('addresses', {
  get: procedure({
    method: 'GET',
    path: '/addresses/{address}',
    summary: 'Answers what is known of an address or range, and what a request from it meets now.',
    input: Input({
      address: Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'IPv4 or IPv6 address, the first one of a range.',
      }),
      prefix: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 128, description: 'Prefix length of a range; without it, one address.' }),
      ),
      siteId: Type.Optional({ ...Id, description: 'A site to answer for as well.' }),
    }),
    output: AddressDossier,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
