import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { nodes } from '../../contract/resources/nodes.ts';
import { nodeAddressOf } from '../../mixins/dns/node-address.ts';
import { publishDns } from '../../mixins/dns/publish-dns.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { hint, leaveHints } from '../../models/db/live-hint.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { Node, nodePage } from '../../models/nodes/node.ts';
import { configureNodeAddresses } from '../../models/nodes/node-address.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { presentNode } from './present-node.ts';

/** Throws NODE_NOT_FOUND, NODE_ADDRESS_INVALID, UPDATED_AT_MISMATCH and BAD_REQUEST. */
export async function setNodeAddresses(
  runtime: Runtime,
  { id, addresses, expectedUpdatedAt }: Input<typeof nodes.setAddresses>,
  call: Call,
): Promise<Output<typeof nodes.setAddresses>> {
  const pathOf = (index: number) => `/addresses/${index}/address`;
  const given = addresses.map(({ address, level }, index) => ({
    address: nodeAddressOf(address, pathOf(index)),
    level,
  }));
  const seen = new Set<string>();
  for (const [index, { address }] of given.entries()) {
    if (seen.has(address)) fail('NODE_ADDRESS_INVALID', { address, path: pathOf(index) });
    seen.add(address);
  }
  if (given.length > 0 && !given.some(({ level }) => level === 0)) badField('/addresses', 'levelZero');
  return write(runtime, call, {}, async (tx) => {
    const node = (await Node.locked(tx.sql, id)) ?? fail('NODE_NOT_FOUND');
    assertUpdatedAt(expectedUpdatedAt, node.updatedAt);
    await configureNodeAddresses(tx.sql, { nodeId: id, clusterId: node.clusterId }, given);
    await Node.query(tx.sql)
      .patch({ updatedAt: nextUpdatedAt(node.updatedAt, tx.now) })
      .where({ id });
    const revision = await publishDns(tx, node.clusterId, { reason: 'manual' });
    const said = { addresses: given, dnsRevision: revision };
    await recordAudit(tx, 'node.addresses_update', { type: 'node', id, name: node.name }, said);
    await leaveHints(tx.sql, [hint('nodes', id)]);
    tx.wake = true;
    const [row] = await nodePage(tx.sql, { id }, 1, 0);
    return presentNode(row!);
  });
}
