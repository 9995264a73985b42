import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { clusters } from '../../contract/resources/clusters.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { CACHE_ZONE } from '../../models/cache/cache-zone.entry.ts';
import {
  Cluster,
  type ClusterSummary,
  clusterContent,
  clusterPage,
  clusterSummary,
  clustersFound,
} from '../../models/clusters/cluster.ts';
import { createCluster } from '../../models/clusters/create-cluster.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { violatedConstraint } from '../../models/db/violations.ts';
import { dnsInUse } from '../../models/dns/binding.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type ClusterOutput = Output<typeof clusters.get>;

function present(row: ClusterSummary): ClusterOutput {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    nodeCount: row.nodes,
    onlineNodeCount: row.online,
    liveNodeCount: row.live,
    appliedNodeCount: row.applied,
    siteCount: row.sites,
    latestRevision: row.latest_revision,
    clientIpMode: row.client_ip_mode as ClusterOutput['clientIpMode'],
    cache: CACHE_ZONE.read(row.cache_zone),
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  };
}

export async function listClusters(
  runtime: Runtime,
  input: Input<typeof clusters.list>,
): Promise<Output<typeof clusters.list>> {
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([
    clusterPage(runtime.pools.api, input.search, limit, offset),
    clustersFound(runtime.pools.api, input.search),
  ]);
  return { items: rows.map(present), total };
}

export async function getCluster(runtime: Runtime, input: Input<typeof clusters.get>): Promise<ClusterOutput> {
  return present((await clusterSummary(runtime.pools.api, input.id)) ?? fail('CLUSTER_NOT_FOUND'));
}

export async function createClusterProcedure(
  runtime: Runtime,
  input: Input<typeof clusters.create>,
  call: Call,
): Promise<ClusterOutput> {
  return write(runtime, call, { status: 201 }, async (tx) => {
    const id = await createCluster(tx, runtime.sealer, { name: input.name, description: input.description ?? '' });
    return present((await clusterSummary(tx.sql, id))!);
  });
}

export async function updateCluster(
  runtime: Runtime,
  input: Input<typeof clusters.update>,
  call: Call,
): Promise<ClusterOutput> {
  return write(runtime, call, {}, async (tx) => {
    const cluster = (await Cluster.locked(tx.sql, input.id)) ?? fail('CLUSTER_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, cluster.updatedAt);
    const { name = cluster.name, description = cluster.description } = input;
    if (name !== cluster.name || description !== cluster.description) {
      const updatedAt = nextUpdatedAt(cluster.updatedAt, tx.now);
      await Cluster.query(tx.sql)
        .patch({ name, description, updatedAt })
        .where({ id: cluster.id })
        .catch((error) => {
          if (violatedConstraint(error) === 'cluster_name_key') fail('CLUSTER_NAME_TAKEN', { name });
          throw error;
        });
      await recordAudit(tx, 'cluster.update', { type: 'cluster', id: cluster.id, name }, { name, description });
    }
    return present((await clusterSummary(tx.sql, cluster.id))!);
  });
}

export async function deleteCluster(
  runtime: Runtime,
  input: Input<typeof clusters.delete>,
  call: Call,
): Promise<Record<string, never>> {
  return write(runtime, call, {}, async (tx) => {
    // FOR UPDATE: a node or site that joins at the same moment waits for the outcome and then fails or keeps the cluster.
    const cluster = (await Cluster.query(tx.sql).findById(input.id).forUpdate()) ?? fail('CLUSTER_NOT_FOUND');
    const { nodes, sites } = await clusterContent(tx.sql, cluster.id);
    if (nodes > 0 || sites > 0) fail('CLUSTER_NOT_EMPTY', { nodes, sites });
    if (await dnsInUse(tx.sql, cluster.id)) fail('DNS_BINDING_IN_USE');
    await Cluster.query(tx.sql).deleteById(cluster.id);
    await recordAudit(tx, 'cluster.delete', { type: 'cluster', id: cluster.id, name: cluster.name });
    return {};
  });
}
