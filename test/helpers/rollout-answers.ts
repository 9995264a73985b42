// What the console answers of a canary, for pages that are looked at without one.
import type { Output } from '../../contract/procedure.ts';
import type { Rollout, rollout } from '../../contract/resources/rollout.ts';

type Event = Output<typeof rollout.rolloutEvent>;

const OPERATOR = { type: 'user', id: 'u1', name: 'operator' };
const FINDING: NonNullable<Rollout['finding']> = {
  reason: 'error_ratio',
  siteId: 's1',
  siteName: 'shop.example.com',
  nodeIds: ['n1'],
  figure: 'origin_5xx',
  before: 0.0012,
  baseline: 0.0015,
  now: 0.93,
  requests: 1234,
  message: 'upstream connect error',
};

/** Two of three canary nodes try a change of three sites. */
export function runningRollout(clusterId: string): Rollout {
  const now = Date.now();
  const at = (seconds: number) => new Date(now + seconds * 1000).toISOString();
  const node = { online: true, healthy: true, able: true, appliedRevision: '42', participating: true };
  return {
    clusterId,
    policy: {
      enabled: true,
      windowSeconds: 3600,
      autoPromote: true,
      errorRatioMultiplier: 2,
      errorRatioFloor: 0.05,
      minRequests: 100,
      undoDirect: false,
    },
    state: 'canary',
    stableRevision: '41',
    candidateRevision: '42',
    lastCandidateRevision: '42',
    windowStartedAt: at(-60),
    windowEndsAt: at(3540),
    outcome: null,
    finding: null,
    finishedAt: null,
    canaryNodes: [
      { ...node, id: 'n1', name: 'edge-1' },
      { ...node, id: 'n2', name: 'edge-2', appliedRevision: '41' },
      { ...node, id: 'n3', name: 'edge-3', online: false, participating: false, appliedRevision: null },
    ],
    window: { canaryRequests: 2000, canary5xx: 30, baselineRequests: 48_000, baseline5xx: 96 },
    candidateChanges: {
      sites: {
        added: [{ id: 's2', name: 'new.example.com' }],
        changed: [
          { id: 's1', name: 'shop.example.com' },
          { id: 's3', name: 'blog.example.com' },
        ],
        removed: [],
      },
      siteCounts: { added: 1, changed: 2, removed: 0 },
      reasons: ['site_created', 'site_updated'],
    },
    policyUpdatedAt: at(-3600),
    updatedAt: at(-60),
  };
}

/** The same once it was taken back. */
export function takenBack(clusterId: string): Rollout {
  return {
    ...runningRollout(clusterId),
    state: 'rolled_back',
    candidateRevision: null,
    candidateChanges: null,
    window: null,
    outcome: 'error_ratio',
    finding: FINDING,
    finishedAt: new Date().toISOString(),
  };
}

/** The report of it. */
export function takenBackEvent(clusterId: string): Event {
  return {
    id: 'e1',
    clusterId,
    clusterName: 'default',
    at: new Date().toISOString(),
    kind: 'rolled_back',
    revision: '43',
    outcome: 'error_ratio',
    finding: FINDING,
    actor: { type: 'system', id: null, name: 'rollouts' },
    sites: [],
    nodes: [{ id: 'n1', name: 'edge-1' }],
    changes: [
      {
        revision: '42',
        reasonCode: 'site_updated',
        reasonParams: {},
        actor: OPERATOR,
        subject: { type: 'site', id: 's1', name: 'shop.example.com', exists: true },
        createdAt: new Date().toISOString(),
      },
    ],
  };
}
