// Kind "node-cache": a node with a cache size of its own. Without an entry it has the size of its cluster.
import { create, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import { NodeCacheSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import type { CompiledEntry, EntryKind } from '../config/entry-kind.ts';
import { nodeOwner } from '../config/entry-owner.ts';

export const NODE_CACHE_KIND = 'node-cache';

interface Row {
  id: string;
  size: number;
}

export const nodeCacheKind: EntryKind = {
  kind: NODE_CACHE_KIND,
  compilerVersion: 1,
  // About a machine: a canary tries nothing with it, and no rollback gives a machine another disk.
  bypass: true,
  onRollback: 'current',
  scope: 'cluster',
  ownerOf: nodeOwner,
  async compile(sql, clusterId, ids) {
    const rows = await sizes(sql, clusterId, ids);
    return new Map(
      rows.map(({ id, size }): [string, CompiledEntry] => [
        id,
        {
          body: toBinary(NodeCacheSchema, create(NodeCacheSchema, { maxSizeGb: size })),
          features: ['cache-zone-v1'],
          refs: [],
        },
      ]),
    );
  },
  async *list(sql, clusterId) {
    const rows = await sizes(sql, clusterId);
    if (rows.length > 0) yield rows.map(({ id }) => id);
  },
};

/** Nodes of the cluster with a size of their own, in GiB, of these or of all. */
async function sizes(sql: Knex, clusterId: string, ids: readonly string[] | null = null): Promise<Row[]> {
  const { rows } = await sql.raw<{ rows: Row[] }>(
    `select id, cache_max_size_gb as size from node
      where cluster_id = ? and cache_max_size_gb is not null and (?::text[] is null or id = any(?)) order by id`,
    [clusterId, ids as never, ids as never],
  );
  return rows;
}
