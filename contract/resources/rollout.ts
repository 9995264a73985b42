// Canaries of a cluster: how changes are tried on a few nodes first, which change is being tried, and what came of it.
import Type, { type Static, type TProperties } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import {
  Decimal,
  ExpectedUpdatedAt,
  Id,
  Input,
  Nullable,
  OneOf,
  Page,
  PageQuery,
  Timestamp,
} from '../scalars/common.ts';
import { Author, NAMED_SITES, Subject } from './revisions.ts';

const Count = Type.Integer({ minimum: 0 });
const Ratio = Type.Number({ minimum: 0, description: 'Share, 0 to 1.' });

/** Nodes listed of a canary. */
export const CANARY_NODES = 200;
/** Reasons, and revisions of an event, answered at most. */
export const LISTED_CHANGES = 100;

export const ROLLOUT_STATES = ['idle', 'canary', 'awaiting_promotion', 'promoted', 'rolled_back', 'direct'] as const;

/** How a canary ended. */
export const ROLLOUT_OUTCOMES = [
  'auto_promote',
  'manual_promote',
  'apply_failed',
  'apply_timeout',
  'unhealthy',
  'error_ratio',
  'manual_abort',
  'no_canary',
  'policy_disabled',
  'manual_rollback',
  'withdrawn',
] as const;

export const FINDING_REASONS = [
  'error_ratio',
  'edge_errors',
  'apply_failed',
  'apply_timeout',
  'unhealthy',
  'offline',
  'restarts',
] as const;

export const ROLLOUT_EVENT_KINDS = ['started', 'promoted', 'rolled_back', 'direct', 'undone', 'undo_stopped'] as const;

const policy = {
  enabled: Type.Boolean({
    description: 'Whether changes go to the nodes of canary groups first. Turning it off promotes the candidate.',
  }),
  windowSeconds: Type.Integer({
    minimum: 60,
    maximum: 3600,
    description: 'How long the canary nodes are watched with a change, in seconds. Default 300.',
  }),
  autoPromote: Type.Boolean({
    description: 'Whether a healthy candidate is promoted automatically at the end of the window. Default true.',
  }),
  errorRatioMultiplier: Type.Number({
    minimum: 1,
    maximum: 100,
    description: 'How many times the 5xx share of the other nodes a canary may reach. Default 2.',
  }),
  errorRatioFloor: Type.Number({
    minimum: 0.001,
    maximum: 1,
    description: 'Share of 5xx responses that a canary may always reach, 0 to 1. Default 0.05.',
  }),
  minRequests: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: 'Requests on canary nodes below which their 5xx responses do not count. Default 100.',
  }),
  undoDirect: Type.Boolean({
    description:
      'Whether changes that go to all nodes at once are watched too, and undone automatically. Default of a new ' +
      'cluster: true in a new installation, else as in the cluster created before it.',
  }),
};

export const RolloutPolicy = Type.Object(policy);
export type RolloutPolicy = Static<typeof RolloutPolicy>;

const Partly = <T extends TProperties>(properties: T) => Type.Partial(Type.Object(properties)).properties;

export const Finding = Type.Object({
  reason: OneOf(FINDING_REASONS),
  siteId: { ...Nullable(Id), description: 'null: the finding concerns no single site.' },
  siteName: Nullable(Type.String()),
  nodeIds: Type.Array(Id, { description: 'Nodes with the finding.' }),
  figure: {
    ...Nullable(Type.String()),
    description:
      'Figure that changed: origin_5xx, edge_5xx, or edge_ followed by the code of an error response of the edge.',
  },
  before: { ...Nullable(Ratio), description: 'Value on the same nodes before the change.' },
  baseline: { ...Nullable(Ratio), description: 'Value on nodes without the change at the same time.' },
  now: { ...Nullable(Ratio), description: 'Value with the change.' },
  requests: { ...Nullable(Count), description: 'Number of requests measured.' },
  message: Nullable(Type.String()),
});
export type Finding = Static<typeof Finding>;

const NamedSites = Type.Array(Type.Object({ id: Id, name: Type.String() }), { maxItems: NAMED_SITES });

export const CanaryNode = Type.Object({
  id: Id,
  name: Type.String(),
  online: Type.Boolean(),
  healthy: Type.Boolean({ description: 'Whether its data plane works and the node applied everything.' }),
  able: Type.Boolean({ description: 'Whether the node can take part: it reports canary-v1.' }),
  appliedRevision: Nullable(Decimal),
  participating: Type.Boolean({
    description: 'Whether the node takes part in the running canary, or took part in the last one.',
  }),
});

export const Rollout = Type.Object({
  clusterId: Id,
  policy: RolloutPolicy,
  state: OneOf(ROLLOUT_STATES, {
    description:
      'canary: the candidate is watched. awaiting_promotion: the window is over and an operator must ' +
      'decide. direct: no canary node was online, so the change went to all nodes.',
  }),
  stableRevision: { ...Nullable(Decimal), description: 'Revision of nodes outside the canary.' },
  candidateRevision: { ...Nullable(Decimal), description: 'Revision of the candidate; null: no canary runs.' },
  lastCandidateRevision: { ...Nullable(Decimal), description: 'Revision of the last candidate.' },
  windowStartedAt: Nullable(Timestamp),
  windowEndsAt: Nullable(Timestamp),
  outcome: { ...Nullable(OneOf(ROLLOUT_OUTCOMES)), description: 'Result of the last canary; null while one runs.' },
  finding: { ...Nullable(Finding), description: 'Problem that was found.' },
  finishedAt: Nullable(Timestamp),
  canaryNodes: Type.Array(CanaryNode, {
    maxItems: CANARY_NODES,
    description: 'Nodes of canary groups and nodes that took part.',
  }),
  window: {
    ...Nullable(Type.Object({ canaryRequests: Count, canary5xx: Count, baselineRequests: Count, baseline5xx: Count })),
    description:
      'Counts of canary nodes and of all others since the start of the canary, within the last hour; null: none.',
  },
  candidateChanges: {
    ...Nullable(
      Type.Object({
        sites: Type.Object({ added: NamedSites, changed: NamedSites, removed: NamedSites }),
        siteCounts: Type.Object({ added: Count, changed: Count, removed: Count }),
        reasons: Type.Array(Type.String(), {
          maxItems: LISTED_CHANGES,
          description: 'Reason codes of the revisions after the stable one, each once.',
        }),
      }),
    ),
    description: 'Differences between the candidate and the stable revision; null: no canary runs.',
  },
  policyUpdatedAt: {
    ...Timestamp,
    description: 'Changes only when the policy is saved, not with publications or canaries.',
  },
  updatedAt: Timestamp,
});
export type Rollout = Static<typeof Rollout>;

const event = {
  id: Id,
  clusterId: Id,
  at: Timestamp,
  kind: OneOf(ROLLOUT_EVENT_KINDS),
  revision: {
    ...Nullable(Decimal),
    description: 'Revision that the event published, or with which the canary started.',
  },
  outcome: Nullable(OneOf(ROLLOUT_OUTCOMES)),
  finding: Nullable(Finding),
  actor: Author,
};

export const RolloutEvent = Type.Object(event);

export const RolloutEventDetails = Type.Object({
  ...event,
  clusterName: Type.String(),
  sites: { ...NamedSites, description: 'Sites with undone changes.' },
  nodes: Type.Array(
    Type.Object({ id: Id, name: Nullable(Type.String({ description: 'null: the node was deleted.' })) }),
    {
      description: 'Nodes of the finding.',
    },
  ),
  changes: Type.Array(
    Type.Object({
      revision: Decimal,
      reasonCode: Type.String(),
      reasonParams: Type.Record(Type.String(), Type.Unknown()),
      actor: Author,
      subject: Subject,
      createdAt: Timestamp,
    }),
    {
      maxItems: LISTED_CHANGES,
      description:
        'Revisions published during the canary, or the undone or own revision of the event; newest first, as ' +
        `far as they are kept, at most ${LISTED_CHANGES}.`,
    },
  ),
});

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

const ends = {
  method: 'POST',
  status: 200,
  readOnly: false,
  idempotency: 'accepted',
} as const;

const SavedPolicy = Type.Object({
  ...policy,
  updatedAt: { ...Timestamp, description: 'Same value as `policyUpdatedAt` of the rollout.' },
});

export const rollout = resource('clusters', {
  rollout: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/rollout',
    summary: 'Returns the running canary of a cluster, and the result of the last one.',
    input: Input({ id: Id }),
    output: Rollout,
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  rolloutPolicy: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/rollout-policy',
    summary: 'Returns the rollout policy of a cluster.',
    input: Input({ id: Id }),
    output: SavedPolicy,
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  setRolloutPolicy: procedure({
    method: 'PUT',
    path: '/clusters/{id}/rollout-policy',
    summary: 'Sets the rollout policy of a cluster; omitted fields keep their values.',
    input: Input({ id: Id, ...Partly(policy), expectedUpdatedAt: ExpectedUpdatedAt }),
    output: SavedPolicy,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.rollout_policy_update',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND', 'UPDATED_AT_MISMATCH'],
  }),
  promoteRollout: procedure({
    ...ends,
    access: 'operator',
    path: '/clusters/{id}/rollout/promote',
    summary: 'Promotes the candidate to all nodes now.',
    input: Input({ id: Id }),
    output: Rollout,
    audit: 'cluster.rollout_promote',
    errors: ['CLUSTER_NOT_FOUND', 'ROLLOUT_NOT_ACTIVE'],
  }),
  abortRollout: procedure({
    ...ends,
    access: 'operator',
    path: '/clusters/{id}/rollout/abort',
    summary: 'Aborts the canary; its nodes return to the stable revision.',
    input: Input({ id: Id }),
    output: Rollout,
    audit: 'cluster.rollout_abort',
    errors: ['CLUSTER_NOT_FOUND', 'ROLLOUT_NOT_ACTIVE'],
  }),
  rolloutEvents: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/rollout-events',
    summary: 'Lists rollout events of a cluster, newest first: canaries started and ended, changes undone.',
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(RolloutEvent),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  rolloutEvent: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{id}/rollout-events/{eventId}',
    summary: 'Returns a rollout event with its nodes and changes.',
    input: Input({ id: Id, eventId: Id }),
    output: RolloutEventDetails,
    errors: ['CLUSTER_NOT_FOUND', 'ROLLOUT_EVENT_NOT_FOUND'],
  }),
});
