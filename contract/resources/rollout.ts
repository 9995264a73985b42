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
    description: 'Whether changes go to the nodes of canary groups first. Turning it off promotes what is being tried.',
  }),
  windowSeconds: Type.Integer({
    minimum: 60,
    maximum: 3600,
    description: 'How long a change is watched on the canary nodes, in seconds. Default 300.',
  }),
  autoPromote: Type.Boolean({
    description: 'Whether a change that does well goes to all nodes by itself when the time is over. Default true.',
  }),
  errorRatioMultiplier: Type.Number({
    minimum: 1,
    maximum: 100,
    description: 'How many times the share of 5xx answers of the other nodes a canary may have. Default 2.',
  }),
  errorRatioFloor: Type.Number({
    minimum: 0.001,
    maximum: 1,
    description: 'Share of 5xx answers that a canary may have in any case. Default 0.05.',
  }),
  minRequests: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: 'Requests that canary nodes must have had before their 5xx answers count. Default 100.',
  }),
  undoDirect: Type.Boolean({
    description:
      'Whether changes that went to all nodes at once are watched, too, and taken back by themselves. Default false.',
  }),
};

export const RolloutPolicy = Type.Object(policy);
export type RolloutPolicy = Static<typeof RolloutPolicy>;

const Partly = <T extends TProperties>(properties: T) => Type.Partial(Type.Object(properties)).properties;

export const Finding = Type.Object({
  reason: OneOf(FINDING_REASONS),
  siteId: { ...Nullable(Id), description: 'null: it is no site alone.' },
  siteName: Nullable(Type.String()),
  nodeIds: Type.Array(Id, { description: 'Nodes it was seen on.' }),
  figure: {
    ...Nullable(Type.String()),
    description: 'What moved: origin_5xx, edge_5xx, or edge_ and the code of an answer that edges made themselves.',
  },
  before: { ...Nullable(Ratio), description: 'Of the same nodes before the change.' },
  baseline: { ...Nullable(Ratio), description: 'Of nodes without the change, at the same time.' },
  now: { ...Nullable(Ratio), description: 'With the change.' },
  requests: { ...Nullable(Count), description: 'Requests that it was seen in.' },
  message: Nullable(Type.String()),
});
export type Finding = Static<typeof Finding>;

const NamedSites = Type.Array(Type.Object({ id: Id, name: Type.String() }), { maxItems: NAMED_SITES });

export const CanaryNode = Type.Object({
  id: Id,
  name: Type.String(),
  online: Type.Boolean(),
  healthy: Type.Boolean({ description: 'Its data plane works and it could apply everything.' }),
  able: Type.Boolean({ description: 'Whether it can take part: reports canary-v1.' }),
  appliedRevision: Nullable(Decimal),
  participating: Type.Boolean({
    description: 'Whether it takes part in the canary that runs, or took part in the last one.',
  }),
});

export const Rollout = Type.Object({
  clusterId: Id,
  policy: RolloutPolicy,
  state: OneOf(ROLLOUT_STATES, {
    description:
      'canary: being watched; awaiting_promotion: watched, and waits for somebody; direct: no canary node was online, so ' +
      'the change went to all nodes.',
  }),
  stableRevision: { ...Nullable(Decimal), description: 'What nodes outside of the canary run.' },
  candidateRevision: { ...Nullable(Decimal), description: 'What is being tried; null: nothing.' },
  lastCandidateRevision: { ...Nullable(Decimal), description: 'What was tried last.' },
  windowStartedAt: Nullable(Timestamp),
  windowEndsAt: Nullable(Timestamp),
  outcome: { ...Nullable(OneOf(ROLLOUT_OUTCOMES)), description: 'How the last canary ended; null while one runs.' },
  finding: { ...Nullable(Finding), description: 'What was found wrong.' },
  finishedAt: Nullable(Timestamp),
  canaryNodes: Type.Array(CanaryNode, {
    maxItems: CANARY_NODES,
    description: 'Nodes of canary groups, and who took part.',
  }),
  window: {
    ...Nullable(Type.Object({ canaryRequests: Count, canary5xx: Count, baselineRequests: Count, baseline5xx: Count })),
    description:
      'What nodes counted since the canary began until it ended, those that have it and all others, of the last hour; null: nothing.',
  },
  candidateChanges: {
    ...Nullable(
      Type.Object({
        sites: Type.Object({ added: NamedSites, changed: NamedSites, removed: NamedSites }),
        siteCounts: Type.Object({ added: Count, changed: Count, removed: Count }),
        reasons: Type.Array(Type.String(), {
          maxItems: LISTED_CHANGES,
          description: 'Reason codes of the revisions published after the stable one, each once.',
        }),
      }),
    ),
    description: 'How the candidate differs from what the other nodes run; null: no canary runs.',
  },
  policyUpdatedAt: { ...Timestamp, description: 'Neither publications nor canaries move it.' },
  updatedAt: Timestamp,
});
export type Rollout = Static<typeof Rollout>;

const event = {
  id: Id,
  clusterId: Id,
  at: Timestamp,
  kind: OneOf(ROLLOUT_EVENT_KINDS),
  revision: { ...Nullable(Decimal), description: 'The revision that it published, or that began it.' },
  outcome: Nullable(OneOf(ROLLOUT_OUTCOMES)),
  finding: Nullable(Finding),
  actor: Author,
};

export const RolloutEvent = Type.Object(event);

export const RolloutEventDetails = Type.Object({
  ...event,
  clusterName: Type.String(),
  sites: { ...NamedSites, description: 'Sites whose changes were undone.' },
  nodes: Type.Array(Type.Object({ id: Id, name: Nullable(Type.String({ description: 'null: deleted since.' })) }), {
    description: 'Nodes of the finding.',
  }),
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
      description: `Revisions published while the canary ran, the one that was undone, or its own; newest first, those still kept, at most ${LISTED_CHANGES}.`,
    },
  ),
});

const reads = {
  method: 'GET',
  status: 200,
  access: 'operator',
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

const ends = {
  method: 'POST',
  status: 200,
  access: 'operator',
  readOnly: false,
  idempotency: 'accepted',
} as const;

const SavedPolicy = Type.Object({
  ...policy,
  updatedAt: { ...Timestamp, description: 'policyUpdatedAt of the rollout.' },
});

export const rollout = resource('clusters', {
  rollout: procedure({
    ...reads,
    path: '/clusters/{id}/rollout',
    summary: 'Answers which change a cluster is trying on its canary nodes, and what came of the last one.',
    input: Input({ id: Id }),
    output: Rollout,
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  rolloutPolicy: procedure({
    ...reads,
    path: '/clusters/{id}/rollout-policy',
    summary: 'Answers how changes of a cluster are tried out.',
    input: Input({ id: Id }),
    output: SavedPolicy,
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  setRolloutPolicy: procedure({
    method: 'PUT',
    path: '/clusters/{id}/rollout-policy',
    summary: 'Sets how changes of a cluster are tried out; what is left out stays.',
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
    path: '/clusters/{id}/rollout/promote',
    summary: 'Gives what the canary tries to all nodes now.',
    input: Input({ id: Id }),
    output: Rollout,
    audit: 'cluster.rollout_promote',
    errors: ['CLUSTER_NOT_FOUND', 'ROLLOUT_NOT_ACTIVE'],
  }),
  abortRollout: procedure({
    ...ends,
    path: '/clusters/{id}/rollout/abort',
    summary: 'Takes what the canary tries back from its nodes.',
    input: Input({ id: Id }),
    output: Rollout,
    audit: 'cluster.rollout_abort',
    errors: ['CLUSTER_NOT_FOUND', 'ROLLOUT_NOT_ACTIVE'],
  }),
  rolloutEvents: procedure({
    ...reads,
    path: '/clusters/{id}/rollout-events',
    summary: 'Lists how canaries of a cluster began and ended, and what was taken back, newest first.',
    input: Input({ id: Id, ...PageQuery(50) }),
    output: Page(RolloutEvent),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
  rolloutEvent: procedure({
    ...reads,
    path: '/clusters/{id}/rollout-events/{eventId}',
    summary: 'Answers one of them with the nodes and changes that it is about.',
    input: Input({ id: Id, eventId: Id }),
    output: RolloutEventDetails,
    errors: ['CLUSTER_NOT_FOUND', 'ROLLOUT_EVENT_NOT_FOUND'],
  }),
});
