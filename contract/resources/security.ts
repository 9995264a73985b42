import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Level } from '../scalars/challenge.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

/** Sites listed as above normal, at most. */
export const MAX_INCIDENT_SITES = 100;

export const SECURITY_EVENT_KINDS = ['site_level', 'path_level', 'ip_banned', 'waf_share'] as const;
const Kind = OneOf(SECURITY_EVENT_KINDS, {
  description:
    'site_level, path_level: a challenge level changed. ip_banned: a client was banned. waf_share: the ' +
    'share of requests that the WAF rates as attacks rose sharply.',
});
export type SecurityEventKind = Static<typeof Kind>;
const Node = Type.Object({ id: Id, name: Type.String() });
const Heavy = Type.Array(Type.Object({ value: Type.String(), count: Type.Integer({ minimum: 0 }) }), {
  description: 'Heaviest first, at most 10, approximate.',
});
const EscalatedPath = Type.Object({ path: Type.String(), level: Level });

export const SecurityState = Type.Object({
  nodes: Type.Array(
    Type.Object({
      ...Node.properties,
      online: Type.Boolean(),
      level: Level,
      escalatedPaths: Type.Array(EscalatedPath, { description: 'At most 64.' }),
      reportedAt: {
        ...Nullable(Timestamp),
        description:
          'Time of the last report; sent every 5 s while a level is above normal on the node. null before the ' +
          'first.',
      },
    }),
    { description: "Active nodes of the site's cluster." },
  ),
  topIps: Heavy,
  topPaths: Heavy,
  hours: Type.Integer(),
});

export const SecurityEvent = Type.Object({
  id: Id,
  node: {
    ...Nullable(Node),
    description: 'null: the node was deleted, or the event is waf_share, which concerns all nodes.',
  },
  occurredAt: Timestamp,
  kind: Kind,
  level: Level,
  previousLevel: Level,
  path: Nullable(Type.String()),
  address: Nullable(Type.String({ description: 'Banned client: IPv4 address or IPv6 /64.' })),
  metric: {
    ...Nullable(Type.String()),
    description:
      'Measured figure: site_qps, url_qps, ip_qps, origin_error_rate, or waf_share (attacks per 100 ' +
      'requests in the last 5 minutes). When a level ended, its cause: cooldown or policy.',
  },
  observed: Nullable(Type.Number()),
  threshold: Nullable(Type.Number()),
  topIps: Heavy,
  topPaths: Heavy,
});

export const Incidents = Type.Object({
  underAttack: Type.Boolean({ description: 'Whether Under Attack is on for all sites.' }),
  sitesUnderAttack: Type.Integer({
    minimum: 0,
    description: 'Number of sites with Under Attack on by their own setting.',
  }),
  sites: Type.Array(
    Type.Object({
      siteId: Id,
      siteName: Type.String(),
      clusterId: Id,
      clusterName: Type.String(),
      level: { ...Level, description: 'Highest level on any online node.' },
      escalatedPaths: Type.Integer({ minimum: 0 }),
      nodes: Type.Array(Type.Object({ ...Node.properties, level: Level }), {
        description: 'Online nodes above normal, at most 10.',
      }),
      nodeCount: Type.Integer({ minimum: 0 }),
      since: Timestamp,
      requestsPerSecond: {
        ...Nullable(Type.Number()),
        description: 'Rate in the latest minute that nodes reported; null: unknown.',
      },
      peakRequestsPerSecond: {
        ...Nullable(Type.Number()),
        description:
          'Highest rate that a node measured in an event since the site is above normal, over a few seconds; null when none did.',
      },
      bansPerMinute: { ...Type.Number(), description: 'Automatic bans per minute in the last 5 minutes.' },
    }),
    { description: `Sites above normal, highest level first, at most ${MAX_INCIDENT_SITES}.` },
  ),
  total: Type.Integer({ minimum: 0, description: 'Number of sites above normal.' }),
  bans: Type.Array(
    Type.Object({
      id: Id,
      siteId: Nullable(Id),
      siteName: Nullable(Type.String()),
      node: Nullable(Node),
      cidr: Type.String(),
      reason: Type.String(),
      createdAt: Timestamp,
      expiresAt: Timestamp,
      distributed: Type.Boolean(),
    }),
    { description: 'Newest active automatic bans, at most 20.' },
  ),
  topIps: { ...Heavy, description: 'Heaviest addresses in events of the last hour on all sites, at most 10.' },
});

export const security = resource('security', {
  state: procedure({
    method: 'GET',
    path: '/sites/{id}/security',
    summary: 'Returns the challenge level of a site on each node, with its heaviest clients and paths.',
    input: Input({
      id: Id,
      hours: Type.Optional(Type.Integer({ minimum: 1, maximum: 168, default: 24 })),
    }),
    output: SecurityState,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  events: procedure({
    method: 'GET',
    path: '/sites/{id}/security/events',
    summary: 'Lists the security events of a site, newest first.',
    input: Input({ id: Id, kind: Type.Optional(Kind), ...PageQuery(50) }),
    output: Page(SecurityEvent),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  incidents: procedure({
    method: 'GET',
    path: '/incidents',
    summary: 'Returns the sites above normal, the newest automatic bans and the heaviest addresses.',
    input: Input({ clusterId: Type.Optional(Id) }),
    output: Incidents,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
