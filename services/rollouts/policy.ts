import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { RolloutPolicy, rollout } from '../../contract/resources/rollout.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { lockHead } from '../../models/config/write-revision.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { promoteCanary } from '../../models/rollouts/finish-canary.ts';
import { readRollout, writeRolloutPolicy } from '../../models/rollouts/rollout.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type SavedPolicy = Output<typeof rollout.rolloutPolicy>;

/** Throws CLUSTER_NOT_FOUND. */
export async function getRolloutPolicy(
  { pools }: Runtime,
  { id }: Input<typeof rollout.rolloutPolicy>,
): Promise<SavedPolicy> {
  const { policy, policyUpdatedAt } = (await readRollout(pools.api, id)) ?? fail('CLUSTER_NOT_FOUND');
  return present(policy, policyUpdatedAt);
}

/** Changes the given fields; turned off, what is being tried goes to all nodes. Throws the contract's errors. */
export async function setRolloutPolicy(
  runtime: Runtime,
  { id, expectedUpdatedAt, ...given }: Input<typeof rollout.setRolloutPolicy>,
  call: Call,
): Promise<SavedPolicy> {
  return write(runtime, call, { clusterId: id }, async (tx) => {
    if (!(await Cluster.locked(tx.sql, id))) fail('CLUSTER_NOT_FOUND');
    // Publications write the same row under this lock: none begins a canary while it is turned off.
    const { promoting } = await lockHead(tx, id, []);
    const before = (await readRollout(tx.sql, id)) ?? fail('CLUSTER_NOT_FOUND');
    assertUpdatedAt(expectedUpdatedAt, before.policyUpdatedAt);
    const policy = { ...before.policy, ...given };
    if (isDeepStrictEqual(policy, before.policy)) return present(policy, before.policyUpdatedAt);
    if (!policy.enabled && before.candidateRevision !== null && promoting === null)
      await promoteCanary(tx, id, 'policy_disabled');
    const policyUpdatedAt = nextUpdatedAt(before.policyUpdatedAt, tx.now);
    await writeRolloutPolicy(tx.sql, id, policy, { policyUpdatedAt, now: tx.now });
    const target = { type: 'cluster', id, name: before.clusterName };
    await recordAudit(tx, 'cluster.rollout_policy_update', target, changesOf(before.policy, policy));
    return present(policy, policyUpdatedAt);
  });
}

function present(policy: RolloutPolicy, updatedAt: Date): SavedPolicy {
  return { ...policy, updatedAt: updatedAt.toISOString() };
}

/** The fields that differ, as they were and as they are. */
function changesOf(before: RolloutPolicy, after: RolloutPolicy): Record<'before' | 'after', Partial<RolloutPolicy>> {
  const fields = (Object.keys(after) as (keyof RolloutPolicy)[]).filter((field) => before[field] !== after[field]);
  const only = (policy: RolloutPolicy) => Object.fromEntries(fields.map((field) => [field, policy[field]]));
  return { before: only(before), after: only(after) };
}
