import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { nodeGroups } from '../../contract/resources/node-groups.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { violatedConstraint } from '../../models/db/violations.ts';
import { linesOfGroup } from '../../models/dns/binding.ts';
import {
  NodeGroup,
  type NodeGroupSummary,
  nodeGroupCount,
  nodeGroupPage,
  nodeGroupSummary,
} from '../../models/nodes/node-group.ts';
import { Region } from '../../models/nodes/region.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';

type NodeGroupOutput = Output<typeof nodeGroups.create>;

function present(row: NodeGroupSummary): NodeGroupOutput {
  return {
    id: row.id,
    clusterId: row.cluster_id,
    name: row.name,
    isDefault: row.is_default,
    isCanary: row.is_canary,
    canaryInEffect: row.canary_in_effect,
    regionId: row.region_id,
    regionName: row.region_name,
    regionCode: row.region_code,
    nodeCount: row.nodes,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

function asNameTaken(name: string): (error: unknown) => never {
  return (error) => {
    if (violatedConstraint(error) === 'node_group_cluster_id_name_key') fail('NODE_GROUP_NAME_TAKEN', { name });
    throw error;
  };
}

async function assertRegion(tx: Tx, regionId: string | null): Promise<void> {
  if (regionId === null) return;
  if (!(await Region.query(tx.sql).findById(regionId).forKeyShare())) fail('REGION_NOT_FOUND');
}

export async function listNodeGroups(
  runtime: Runtime,
  input: Input<typeof nodeGroups.list>,
): Promise<Output<typeof nodeGroups.list>> {
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([
    nodeGroupPage(runtime.pools.api, input, limit, offset),
    nodeGroupCount(runtime.pools.api, input),
  ]);
  return { items: rows.map(present), total };
}

export async function createNodeGroup(
  runtime: Runtime,
  input: Input<typeof nodeGroups.create>,
  call: Call,
): Promise<NodeGroupOutput> {
  return write(runtime, call, { status: 201 }, async (tx) => {
    if (!(await Cluster.query(tx.sql).findById(input.clusterId).forKeyShare())) fail('CLUSTER_NOT_FOUND');
    const { clusterId, name, isCanary = false, regionId = null } = input;
    await assertRegion(tx, regionId);
    const times = { createdAt: tx.now, updatedAt: tx.now };
    const { id } = await NodeGroup.query(tx.sql)
      .insert({ clusterId, name, isCanary, regionId, ...times })
      .returning('id')
      .catch(asNameTaken(name));
    await recordAudit(tx, 'node_group.create', { type: 'node_group', id, name }, { clusterId });
    return present((await nodeGroupSummary(tx.sql, id))!);
  });
}

export async function updateNodeGroup(
  runtime: Runtime,
  input: Input<typeof nodeGroups.update>,
  call: Call,
): Promise<NodeGroupOutput> {
  return write(runtime, call, {}, async (tx) => {
    const group = (await NodeGroup.locked(tx.sql, input.id)) ?? fail('NODE_GROUP_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, group.updatedAt);
    const { name = group.name, isCanary = group.isCanary, regionId = group.regionId } = input;
    if (name !== group.name || isCanary !== group.isCanary || regionId !== group.regionId) {
      await assertRegion(tx, regionId);
      const updatedAt = nextUpdatedAt(group.updatedAt, tx.now);
      await NodeGroup.query(tx.sql)
        .patch({ name, isCanary, regionId, updatedAt })
        .where({ id: group.id })
        .catch(asNameTaken(name));
      const changes = { name, isCanary, regionId };
      await recordAudit(tx, 'node_group.update', { type: 'node_group', id: group.id, name }, changes);
    }
    return present((await nodeGroupSummary(tx.sql, group.id))!);
  });
}

export async function deleteNodeGroup(
  runtime: Runtime,
  input: Input<typeof nodeGroups.delete>,
  call: Call,
): Promise<Record<string, never>> {
  return write(runtime, call, {}, async (tx) => {
    const group = (await NodeGroup.locked(tx.sql, input.id)) ?? fail('NODE_GROUP_NOT_FOUND');
    if (group.isDefault) fail('NODE_GROUP_IS_DEFAULT');
    const lines = await linesOfGroup(tx.sql, group.clusterId, group.id);
    if (lines.length > 0) fail('DNS_BINDING_IN_USE', { lines });
    const target = (await NodeGroup.defaultOf(tx.sql, group.clusterId))!;
    const moved = await tx
      .sql('node')
      .where({ node_group_id: group.id })
      .update({
        node_group_id: target.id,
        updated_at: tx.sql.raw(`greatest(?, updated_at + interval '1 ms')`, [tx.now]),
      });
    await NodeGroup.query(tx.sql).deleteById(group.id);
    await recordAudit(tx, 'node_group.delete', { type: 'node_group', id: group.id, name: group.name }, { moved });
    return {};
  });
}
