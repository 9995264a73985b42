import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { nodeCache } from '../../contract/resources/cache-zone.ts';
import { CACHE_ZONE } from '../../models/cache/cache-zone.entry.ts';
import { NODE_CACHE_KIND } from '../../models/cache/node-cache.entry.ts';
import { readClusterSetting } from '../../models/clusters/cluster-settings.ts';
import { publish } from '../../models/config/publish.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { Node } from '../../models/nodes/node.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type NodeCacheOutput = Output<typeof nodeCache.get>;

/** Throws NODE_NOT_FOUND. */
export async function getNodeCache({ pools }: Runtime, { id }: Input<typeof nodeCache.get>): Promise<NodeCacheOutput> {
  return present(pools.api, (await Node.byId(pools.api, id)) ?? fail('NODE_NOT_FOUND'));
}

/** Saves and publishes the size; an equal one changes nothing. Throws NODE_NOT_FOUND. */
export async function setNodeCache(
  runtime: Runtime,
  { id, maxSizeGb }: Input<typeof nodeCache.set>,
  call: Call,
): Promise<Output<typeof nodeCache.set>> {
  const { clusterId } = (await Node.byId(runtime.pools.api, id)) ?? fail('NODE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const node = (await Node.locked(tx.sql, id)) ?? fail('NODE_NOT_FOUND');
    const before = node.cacheMaxSizeGb;
    const changed = before !== maxSizeGb;
    if (changed) {
      const updatedAt = nextUpdatedAt(node.updatedAt, tx.now);
      await Node.query(tx.sql).patch({ cacheMaxSizeGb: maxSizeGb, updatedAt }).where({ id });
    }
    const target = { type: 'node', id, name: node.name };
    const metadata = { before, after: maxSizeGb };
    const revision = await publish(tx, {
      clusterId,
      entries: [{ kind: NODE_CACHE_KIND, id }],
      reason: 'node_cache_updated',
      params: { node: node.name, nodeId: id },
      ...(changed ? { audit: { action: 'node.cache_update', target, metadata } } : {}),
    });
    return { ...(await present(tx.sql, { clusterId, cacheMaxSizeGb: maxSizeGb })), revision };
  });
}

async function present(
  sql: Runtime['pools']['api'],
  { clusterId, cacheMaxSizeGb }: Pick<Node, 'clusterId' | 'cacheMaxSizeGb'>,
): Promise<NodeCacheOutput> {
  const { settings } = (await readClusterSetting(sql, clusterId, CACHE_ZONE)) ?? fail('NODE_NOT_FOUND');
  return { maxSizeGb: cacheMaxSizeGb, clusterMaxSizeGb: settings.maxSizeGb };
}
