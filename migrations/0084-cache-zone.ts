// Disk space of the cache, of clusters and of single nodes.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- {"maxSizeGb": …, "inactiveDays": …}; null: the default.
    alter table cluster add column cache_zone jsonb;
    -- GiB; null: that of the cluster.
    alter table node add column cache_max_size_gb integer check (cache_max_size_gb between 1 and 65536);
    create index node_cache on node (cluster_id, id) where cache_max_size_gb is not null;
  `);
}
