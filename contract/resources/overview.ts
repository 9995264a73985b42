// Is everything all right? What needs somebody, the sizes of things, and how fast changes arrive.
import Type, { type Static } from 'typebox';
import { ATTENTION_LISTS } from '../gen/attention.ts';
import { procedure, resource } from '../procedure.ts';
import { merged } from '../registered.ts';
import { Level } from '../scalars/challenge.ts';
import { Decimal, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { Change } from './changes.ts';
import { Author, Subject } from './revisions.ts';

/** Items of the attention list, and things named by each of them, at most. */
export const MAX_ATTENTION = 50;
export const MAX_NAMED = 5;
/** Revisions listed. */
export const SHOWN_REVISIONS = 5;

/** What can need somebody, by kind, as the resources say it. */
export const ATTENTION = merged(ATTENTION_LISTS);
export type AttentionKind = keyof typeof ATTENTION;

/** In the order of the list. */
export const ATTENTION_KINDS: readonly AttentionKind[] = (Object.keys(ATTENTION) as AttentionKind[]).sort(
  (a, b) => ATTENTION[a].order - ATTENTION[b].order,
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
const Milliseconds = Type.Number({ minimum: 0, description: 'Milliseconds.' });

const AttentionItem = Type.Object({
  kind: OneOf(ATTENTION_KINDS),
  level: OneOf(['act', 'watch'], { description: 'act: something does not work; watch: it may stop to, or is meant.' }),
  clusterId: { ...Nullable(Id), description: 'null: of no cluster alone.' },
  clusterName: Type.String(),
  revision: {
    ...Nullable(Decimal),
    description: 'nodes_lagging: the revision they should run; canary kinds: what is or was tried.',
  },
  at: {
    ...Nullable(Timestamp),
    description: 'Since when, of the oldest; certificates_ending, node_certificates_ending: when the first ends.',
  },
  count: {
    ...Count,
    description:
      'Nodes, sites or revisions that wait; clusters_no_nodes: sites of the cluster; changes_undone: changes.',
  },
  version: Type.String(),
  named: Type.Array(
    Type.Object({
      type: OneOf(['node', 'site']),
      id: Id,
      name: Type.String(),
      reason: {
        ...Nullable(Type.Union([OneOf(NODE_WORDS), Level, Type.Literal('unserved')])),
        description: 'The word for the node, or for the site: its level, or unserved.',
      },
    }),
    { description: `The first of them, at most ${MAX_NAMED}.` },
  ),
  problem: { ...Nullable(OneOf(CHANNEL_PROBLEMS)), description: 'node_channel: what the check found.' },
});
export type AttentionItem = Static<typeof AttentionItem>;

const Spread = Type.Object({
  changes: { ...Count, description: 'The newest changes of the last day that nodes were connected for, at most 500.' },
  complete: { ...Count, description: 'Of those, the changes that every connected node had within a minute.' },
  p50Ms: {
    ...Nullable(Milliseconds),
    description: 'Half of the changes reached every connected node within this time; null: fewer did.',
  },
  p95Ms: Nullable(Milliseconds),
  p99Ms: Nullable(Milliseconds),
  slowest: {
    ...Nullable(
      Type.Object({
        id: Id,
        name: { ...Nullable(Type.String()), description: 'null: deleted since.' },
        lastIn: { ...Count, description: 'Changes in which it was the last.' },
        worstMs: Milliseconds,
      }),
    ),
    description: 'The node that was last most often; of a cluster: among its own.',
  },
});

const LatestChange = Type.Object({
  ...Type.Omit(Change, ['actor', 'subject', 'waiting', 'firstAppliedAt', 'lastAppliedAt']).properties,
  clusterName: Nullable(Type.String()),
  spreadMs: {
    ...Nullable(Milliseconds),
    description:
      'Until every connected node had it, with a ban of all clusters those of all of them; null: not yet, or nobody was connected.',
  },
  slowest: Nullable(Type.Object({ id: Id, name: Type.String() })),
});

const Propagation = Type.Object({
  latest: { ...Nullable(LatestChange), description: 'The newest change; null: there is none yet.' },
  recent: { ...Nullable(Spread), description: 'null: no data yet.' },
});

export const Overview = Type.Object({
  readAt: { ...Timestamp, description: 'Up to 2 s ago.' },
  attention: Type.Array(AttentionItem, { description: `What needs somebody, by kind, at most ${MAX_ATTENTION}.` }),
  attentionTotal: { ...Count, description: 'Items there are.' },
  clusters: Count,
  nodes: { ...Count, description: 'Active nodes.' },
  onlineNodes: { ...Count, description: 'Of those, connected.' },
  nodeStates: Type.Object(
    Object.fromEntries(NODE_WORDS.map((word) => [word, Count])) as Record<NodeWord, typeof Count>,
    {
      description: 'Nodes by the worst word for them.',
    },
  ),
  sites: Count,
  siteStates: Type.Object(
    { live: Count, partial: Count, pending: Count, unserved: Count, disabled: Count },
    { description: 'Sites by delivery, each once; pending: on its way, unserved: nobody serves it.' },
  ),
  traffic: {
    ...Nullable(Type.Object({ minute: Timestamp, requestsPerSecond: Type.Number({ minimum: 0 }) })),
    description: 'The latest minute that every node has had the time to report; null: no data yet.',
  },
  bans: Type.Object(
    { manual: Count, automatic: Count },
    { description: 'In force; of a cluster: at its nodes, those of all clusters among them.' },
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
    { description: `The newest, at most ${SHOWN_REVISIONS}.` },
  ),
});

const OfCluster = Type.Optional({ ...Id, description: 'Everything is about this cluster then; default all of them.' });

export const overview = resource('overview', {
  get: procedure({
    method: 'GET',
    path: '/overview',
    summary: 'Answers what needs attention, the sizes of things, and how fast changes reach the nodes.',
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
    summary: 'Answers requests per second of all sites, or of those of a cluster, minute by minute.',
    input: Input({
      clusterId: OfCluster,
      hours: Type.Optional(Type.Integer({ minimum: 1, maximum: 24, default: 3 })),
    }),
    output: Type.Object({
      from: { ...Nullable(Timestamp), description: 'First of the minutes; null: no data yet.' },
      requestsPerSecond: Type.Array(Type.Number({ minimum: 0 }), {
        description: 'Of each minute since, oldest first, up to the latest that every node has had the time to report.',
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
