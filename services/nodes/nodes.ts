import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { nodes } from '../../contract/resources/nodes.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { nodeOwner } from '../../models/config/entry-owner.ts';
import { publish } from '../../models/config/publish.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { Node, type NodeFilter, nodeCount, nodePage } from '../../models/nodes/node.ts';
import { NodeCertificate } from '../../models/nodes/node-certificate.ts';
import { NodeGroup } from '../../models/nodes/node-group.ts';
import type { Call } from '../../runtime/call.ts';
import { announceNodeAccess } from '../../runtime/node-access.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { presentNode } from './present-node.ts';

type NodeOutput = Output<typeof nodes.get>;

export async function listNodes(runtime: Runtime, input: Input<typeof nodes.list>): Promise<Output<typeof nodes.list>> {
  const { clusterId, nodeGroupId, status, online, search, lacks, sort } = input;
  const filter: NodeFilter = { clusterId, nodeGroupId, status, online, search, lacks };
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([
    nodePage(runtime.pools.api, { ...filter, sort }, limit, offset),
    nodeCount(runtime.pools.api, filter),
  ]);
  return { items: rows.map(presentNode), total };
}

export async function getNode(runtime: Runtime, input: Input<typeof nodes.get>): Promise<NodeOutput> {
  const [row] = await nodePage(runtime.pools.api, { id: input.id }, 1, 0);
  return presentNode(row ?? fail('NODE_NOT_FOUND'));
}

async function read(tx: Tx, id: string): Promise<NodeOutput> {
  const [row] = await nodePage(tx.sql, { id }, 1, 0);
  return presentNode(row!);
}

export async function updateNode(runtime: Runtime, input: Input<typeof nodes.update>, call: Call): Promise<NodeOutput> {
  return write(runtime, call, {}, async (tx) => {
    const node = (await Node.locked(tx.sql, input.id)) ?? fail('NODE_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, node.updatedAt);
    const { name = node.name, nodeGroupId = node.nodeGroupId } = input;
    const moved = nodeGroupId !== node.nodeGroupId;
    if (moved) {
      const group = (await NodeGroup.query(tx.sql).findById(nodeGroupId).forKeyShare()) ?? fail('NODE_GROUP_NOT_FOUND');
      if (group.clusterId !== node.clusterId) fail('NODE_GROUP_CLUSTER_MISMATCH');
    }
    if (moved || name !== node.name) {
      const updatedAt = nextUpdatedAt(node.updatedAt, tx.now);
      await Node.query(tx.sql).patch({ name, nodeGroupId, updatedAt }).where({ id: node.id });
      const target = { type: 'node', id: node.id, name };
      if (name !== node.name) await recordAudit(tx, 'node.update', target, { name, before: node.name });
      if (moved) await recordAudit(tx, 'node.move', target, { nodeGroupId, before: node.nodeGroupId });
    }
    return read(tx, node.id);
  });
}

/** Enables or disables; asking for the status it has changes nothing. */
export async function setNodeStatus(
  runtime: Runtime,
  input: Input<typeof nodes.disable>,
  status: 'active' | 'disabled',
  call: Call,
): Promise<NodeOutput> {
  const output = await write(runtime, call, {}, async (tx) => {
    const node = (await Node.locked(tx.sql, input.id)) ?? fail('NODE_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, node.updatedAt);
    if (node.status !== status) {
      await Node.query(tx.sql)
        .patch({ status, updatedAt: nextUpdatedAt(node.updatedAt, tx.now) })
        .where({ id: node.id });
      const action = status === 'active' ? 'node.enable' : 'node.disable';
      await recordAudit(tx, action, { type: 'node', id: node.id, name: node.name });
    }
    return read(tx, node.id);
  });
  announceNodeAccess(runtime);
  return output;
}

export async function deleteNode(
  runtime: Runtime,
  input: Input<typeof nodes.delete>,
  call: Call,
): Promise<Record<string, never>> {
  const { clusterId } = (await Node.byId(runtime.pools.api, input.id)) ?? fail('NODE_NOT_FOUND');
  await write(runtime, call, { clusterId }, async (tx) => {
    const node = (await Node.locked(tx.sql, input.id)) ?? fail('NODE_NOT_FOUND');
    await NodeCertificate.revokeAll(tx.sql, node.id, tx.now);
    await Node.query(tx.sql).deleteById(node.id);
    await recordAudit(tx, 'node.delete', { type: 'node', id: node.id, name: node.name }, { clusterId });
    if (node.cacheMaxSizeGb !== null) {
      const params = { node: node.name, nodeId: node.id };
      await publish(tx, { clusterId, entries: [], ends: [nodeOwner(node.id)], reason: 'node_cache_updated', params });
    }
    return {};
  });
  announceNodeAccess(runtime);
  return {};
}
