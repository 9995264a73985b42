// Is everything all right? What needs somebody, the sizes of things, and how fast changes arrive.
import Type, { type Static } from 'typebox';
import { FAILURE_CAUSES } from '../failure-causes.ts';
import { ATTENTION_LISTS } from '../gen/attention.ts';
import { procedure, resource } from '../procedure.ts';
import { merged } from '../registered.ts';
import { Level } from '../scalars/challenge.ts';
import { Decimal, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { Change } from './changes.ts';
import { Author, Subject } from './revisions.ts';

/** Items of the attention list whose kinds the specification does not have, at most. Items of its kinds are never cut. */
export const MAX_ATTENTION = 50;
/** Things that an item names, at most. */
export const MAX_NAMED = 5;
/** Revisions listed. */
export const SHOWN_REVISIONS = 5;

/** What can need somebody, by kind, as the resources say it. */
export const ATTENTION = merged(ATTENTION_LISTS);
export type AttentionKind = keyof typeof ATTENTION;

/** Kinds of the specification, in its order; those that no resource declares yet are missing from {@link ATTENTION_KINDS}. */
const SPECIFIED_KINDS: readonly string[] = [
  'nodes_unhealthy',
  'dns_failed',
  'dns_blocked',
  'upgrade_failed',
  'canary_rolled_back',
  'canary_awaiting_promotion',
  'canary_running',
  'nodes_lagging',
  'nodes_no_address',
];

export const isSpecifiedAttention = (kind: AttentionKind): boolean => SPECIFIED_KINDS.includes(kind);

const placeOf = (kind: AttentionKind): number =>
  isSpecifiedAttention(kind) ? SPECIFIED_KINDS.indexOf(kind) : SPECIFIED_KINDS.length + ATTENTION[kind].order;

/** In the order of the list: the kinds of the specification, then ours by their `order`. */
export const ATTENTION_KINDS: readonly AttentionKind[] = (Object.keys(ATTENTION) as AttentionKind[]).sort(
  (a, b) => placeOf(a) - placeOf(b),
);

/** What a node is, in one word, worst first. */
export const NODE_WORDS = [
  'refused',
  'certificate_expired',
  'offline',
  'apply_failed',
  'data_plane_unhealthy',
  'upgrade_required',
  'config_behind',
  'bans_behind',
  'awaiting',
  'ok',
  'disabled',
] as const;
export type NodeWord = (typeof NODE_WORDS)[number];

const CHANNEL_PROBLEMS = ['unreachable', 'mismatch', 'refused'] as const;

const Count = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Number({ minimum: 0, description: 'Time in milliseconds.' });

const AttentionItem = Type.Object({
  kind: OneOf(ATTENTION_KINDS),
  level: OneOf(['act', 'watch'], {
    description: 'act: something does not work; watch: something may stop working, or is intended.',
  }),
  clusterId: { ...Nullable(Id), description: 'null: the item concerns several clusters.' },
  clusterName: Type.String(),
  revision: {
    ...Nullable(Decimal),
    description:
      'nodes_lagging: target revision of the nodes. Canary kinds: revision of the candidate. ' +
      'site_failing: revision that changed the site shortly before; null: none did.',
  },
  at: {
    ...Nullable(Timestamp),
    description: 'Start of the oldest case. certificates_ending and node_certificates_ending: first expiry.',
  },
  count: {
    ...Count,
    description:
      'Number of nodes, sites or waiting revisions. clusters_no_nodes: sites of the cluster. ' +
      'changes_undone: changes.',
  },
  version: Type.String(),
  named: Type.Array(
    Type.Object({
      type: OneOf(['node', 'site']),
      id: Id,
      name: Type.String(),
      reason: {
        ...Nullable(Type.Union([OneOf(NODE_WORDS), Level, Type.Literal('unserved')])),
        description: 'State of the node; of a site its challenge level, or `unserved`.',
      },
    }),
    { description: `The first objects concerned, at most ${MAX_NAMED}.` },
  ),
  problem: {
    ...Nullable(OneOf([...CHANNEL_PROBLEMS, ...FAILURE_CAUSES])),
    description: 'node_channel: result of its check. site_failing: cause of most failed requests.',
  },
  percent: {
    ...Nullable(Type.Integer({ minimum: 0, maximum: 100 })),
    description: 'site_failing: percent of the requests of the last minute that failed.',
  },
});
export type AttentionItem = Static<typeof AttentionItem>;

const Spread = Type.Object({
  changes: { ...Count, description: 'Number of changes of the last day, while nodes were connected; at most 500.' },
  complete: { ...Count, description: 'Number of these changes that every connected node applied within 1 minute.' },
  p50Ms: {
    ...Nullable(Milliseconds),
    description: 'Median time in ms until every connected node had the change; null: fewer than half were complete.',
  },
  p95Ms: Nullable(Milliseconds),
  p99Ms: Nullable(Milliseconds),
  slowest: {
    ...Nullable(
      Type.Object({
        id: Id,
        name: { ...Nullable(Type.String()), description: 'null: the node was deleted.' },
        lastIn: { ...Count, description: 'Number of changes that the node received last.' },
        worstMs: Milliseconds,
      }),
    ),
    description: 'The node that most often was the last to receive a change, within its cluster or overall.',
  },
});

const LatestChange = Type.Object({
  ...Type.Omit(Change, ['actor', 'subject', 'undoable', 'waiting', 'firstAppliedAt', 'lastAppliedAt']).properties,
  clusterName: Nullable(Type.String()),
  spreadMs: {
    ...Nullable(Milliseconds),
    description:
      'Time in ms until every connected node had the change; for a global ban, the nodes of all clusters. ' +
      'null: not complete, or no node was connected.',
  },
  slowest: Nullable(Type.Object({ id: Id, name: Type.String() })),
});

const Propagation = Type.Object({
  latest: { ...Nullable(LatestChange), description: 'The newest change; null: none yet.' },
  recent: { ...Nullable(Spread), description: 'null: no data yet.' },
});

export const Overview = Type.Object({
  readAt: { ...Timestamp, description: 'Time of the figures, at most 2 s ago.' },
  attention: Type.Array(AttentionItem, {
    description:
      'Items that need attention, by kind: first all of the kinds nodes_unhealthy to nodes_lagging, then at most ' +
      `${MAX_ATTENTION} of the other kinds.`,
  }),
  attentionTotal: { ...Count, description: 'Number of items that need attention.' },
  clusters: Count,
  nodes: { ...Count, description: 'Number of active nodes.' },
  onlineNodes: { ...Count, description: 'Number of active nodes that are connected.' },
  nodeStates: Type.Object(
    Object.fromEntries(NODE_WORDS.map((word) => [word, Count])) as Record<NodeWord, typeof Count>,
    {
      description: 'Number of nodes by their worst state.',
    },
  ),
  sites: Count,
  siteStates: Type.Object(
    { live: Count, partial: Count, pending: Count, unserved: Count, unknown: Count, disabled: Count },
    {
      description:
        'Number of sites by delivery state. pending: on its way; unserved: no node serves the site; unknown: all ' +
        'nodes of its cluster are silent.',
    },
  ),
  traffic: {
    ...Nullable(Type.Object({ minute: Timestamp, requestsPerSecond: Type.Number({ minimum: 0 }) })),
    description: 'The latest minute that every node had time to report; null: no data yet.',
  },
  bans: Type.Object(
    { manual: Count, automatic: Count },
    { description: 'Active bans; for a cluster, those at its nodes, including global ones.' },
  ),
  propagation: Type.Object({ config: Propagation, bans: Propagation }),
  revisions: Type.Array(
    Type.Object({
      clusterId: Id,
      clusterName: Type.String(),
      revision: Decimal,
      reasonCode: Type.String(),
      reasonParams: Type.Record(Type.String(), Type.Unknown()),
      actor: Author,
      subject: Subject,
      createdAt: Timestamp,
    }),
    { description: `The newest revisions, at most ${SHOWN_REVISIONS}.` },
  ),
});

const OfCluster = Type.Optional({ ...Id, description: 'Limits the response to this cluster. Default: all clusters.' });

export const overview = resource('overview', {
  get: procedure({
    method: 'GET',
    path: '/overview',
    summary: 'Returns the items that need attention, key figures, and the propagation time of changes.',
    input: Input({ clusterId: OfCluster }),
    output: Overview,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  traffic: procedure({
    method: 'GET',
    path: '/overview/traffic',
    summary: 'Returns requests per second, minute by minute, of all sites or of one cluster.',
    input: Input({
      clusterId: OfCluster,
      hours: Type.Optional(Type.Integer({ minimum: 1, maximum: 24, default: 3 })),
    }),
    output: Type.Object({
      from: { ...Nullable(Timestamp), description: 'First minute of the series; null: no data yet.' },
      requestsPerSecond: Type.Array(Type.Number({ minimum: 0 }), {
        description: 'One value per minute, oldest first, up to the latest minute that every node had time to report.',
      }),
    }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
});
