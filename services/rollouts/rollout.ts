import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { rollout } from '../../contract/resources/rollout.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { abortCanary, promoteCanary } from '../../models/rollouts/finish-canary.ts';
import { type RolloutRow, readRollout } from '../../models/rollouts/rollout.ts';
import { canaryNodes, candidateChanges, windowFigures } from '../../models/rollouts/rollout-view.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { presentFinding } from './present-finding.ts';

type Rollout = Output<typeof rollout.rollout>;
type Sql = Runtime['pools']['api'];

/** Throws CLUSTER_NOT_FOUND. */
export async function getRollout({ pools }: Runtime, { id }: Input<typeof rollout.rollout>): Promise<Rollout> {
  return rolloutOf(pools.api, id);
}

/** Gives what is tried to all nodes now. Throws CLUSTER_NOT_FOUND and ROLLOUT_NOT_ACTIVE. */
export async function promoteRollout(
  runtime: Runtime,
  { id }: Input<typeof rollout.promoteRollout>,
  call: Call,
): Promise<Rollout> {
  return finish(runtime, id, call, 'cluster.rollout_promote', (tx) => promoteCanary(tx, id, 'manual_promote'));
}

/** Takes what is tried back. Throws CLUSTER_NOT_FOUND and ROLLOUT_NOT_ACTIVE. */
export async function abortRollout(
  runtime: Runtime,
  { id }: Input<typeof rollout.abortRollout>,
  call: Call,
): Promise<Rollout> {
  return finish(runtime, id, call, 'cluster.rollout_abort', (tx) => abortCanary(tx, id, 'manual_abort'));
}

async function finish(
  runtime: Runtime,
  id: string,
  call: Call,
  action: string,
  end: (tx: Tx) => Promise<unknown>,
): Promise<Rollout> {
  return write(runtime, call, { clusterId: id }, async (tx) => {
    const cluster = (await Cluster.locked(tx.sql, id)) ?? fail('CLUSTER_NOT_FOUND');
    await end(tx);
    const ended = await rolloutOf(tx.sql, id);
    const { lastCandidateRevision: candidateRevision } = ended;
    await recordAudit(tx, action, { type: 'cluster', id, name: cluster.name }, { candidateRevision });
    return ended;
  });
}

async function rolloutOf(sql: Sql, id: string): Promise<Rollout> {
  const row = (await readRollout(sql, id)) ?? fail('CLUSTER_NOT_FOUND');
  return present(row, {
    canaryNodes: await canaryNodes(sql, id),
    candidateChanges: row.candidateRevision === null ? null : await candidateChanges(sql, id, row.startedFrom),
    window: row.state === 'direct' ? null : await windowFigures(sql, id, row),
  });
}

function present(row: RolloutRow, beside: Pick<Rollout, 'canaryNodes' | 'candidateChanges' | 'window'>): Rollout {
  const time = (date: Date | null) => date?.toISOString() ?? null;
  return {
    clusterId: row.clusterId,
    policy: row.policy,
    state: row.state,
    stableRevision: row.stableRevision === '0' ? null : row.stableRevision,
    candidateRevision: row.candidateRevision,
    lastCandidateRevision: row.lastCandidateRevision,
    windowStartedAt: time(row.windowStartedAt),
    windowEndsAt: time(row.windowEndsAt),
    outcome: row.outcome,
    finding: presentFinding(row.finding),
    finishedAt: time(row.finishedAt),
    ...beside,
    policyUpdatedAt: row.policyUpdatedAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
