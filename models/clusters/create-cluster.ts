// A new cluster: its row, its default group, the keys that its nodes share, the head of its history and its first revision,
// which holds every platform entry. Also what setup does for the first cluster.
import { fail } from '../../contract/errors.ts';
import type { Sealer } from '../../runtime/sealer.ts';
import type { Tx } from '../../runtime/write.ts';
import { recordAudit } from '../audit/audit-entry.ts';
import { publishAll } from '../config/publish.ts';
import { violatedConstraint } from '../db/violations.ts';
import { NodeGroup } from '../nodes/node-group.ts';
import { createRolloutPolicy } from '../rollouts/rollout.ts';
import { CHALLENGE_KEYS } from './challenge-key.ts';
import { Cluster } from './cluster.ts';
import { SESSION_TICKET_KEYS } from './session-ticket-key.ts';

export interface NewCluster {
  name: string;
  description?: string;
}

/** Answers the id. Throws CLUSTER_NAME_TAKEN, after which the transaction can only be rolled back. */
export async function createCluster(tx: Tx, sealer: Sealer, input: NewCluster): Promise<string> {
  const { name, description = '' } = input;
  const times = { createdAt: tx.now, updatedAt: tx.now };
  const { id } = await Cluster.query(tx.sql)
    .insert({ name, description, ...times })
    .returning('id')
    .catch((error) => {
      if (violatedConstraint(error) === 'cluster_name_key') fail('CLUSTER_NAME_TAKEN', { name });
      throw error;
    });
  await NodeGroup.query(tx.sql).insert({ clusterId: id, name: 'default', isDefault: true, ...times });
  await tx.sql.raw('insert into cluster_head (cluster_id, epoch) select ?, epoch from console_state', [id]);
  for (const keys of [CHALLENGE_KEYS, SESSION_TICKET_KEYS]) await keys.create(tx.sql, sealer, id, tx.now);
  await recordAudit(tx, 'cluster.create', { type: 'cluster', id, name });
  await publishAll(tx, { clusterId: id, reason: 'cluster_created', params: { cluster: name } });
  // Afterwards: there is nothing to return to from the first revision.
  await createRolloutPolicy(tx.sql, id, tx.now);
  return id;
}
