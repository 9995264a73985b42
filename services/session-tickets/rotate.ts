import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { sessionTicketKeys } from '../../contract/resources/session-ticket-keys.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { keepCluster } from '../../models/clusters/cluster.ts';
import { SESSION_TICKET_KEYS } from '../../models/clusters/session-ticket-key.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

/** Rotates the keys whatever their age. Throws CLUSTER_NOT_FOUND, SESSION_TICKET_KEYS_NOT_HELD. */
export async function rotateSessionTicketKeys(
  runtime: Runtime,
  { clusterId }: Input<typeof sessionTicketKeys.rotate>,
  call: Call,
): Promise<Output<typeof sessionTicketKeys.rotate>> {
  return write(runtime, call, {}, async (tx) => {
    const name = (await keepCluster(tx.sql, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
    // A cluster of before such keys existed gets its first ones.
    await SESSION_TICKET_KEYS.create(tx.sql, runtime.sealer, clusterId, tx.now);
    const rotated = await SESSION_TICKET_KEYS.rotateNow(tx.sql, runtime.sealer, clusterId, tx.now);
    if ('lacking' in rotated) fail('SESSION_TICKET_KEYS_NOT_HELD', { nodes: rotated.lacking });
    const version = String(rotated.version);
    await recordAudit(tx, 'cluster.session_ticket_keys_rotate', { type: 'cluster', id: clusterId, name }, { version });
    return { version, rotatedAt: tx.now.toISOString() };
  });
}
