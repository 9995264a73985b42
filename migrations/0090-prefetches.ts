// Prefetches as nodes do them.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- node_task_id: the task that the node has of it, null while it waits. result: as the API returns it, null until it is there.
    create table prefetch_node (
      task_id text not null references cache_task on delete cascade,
      node_id text not null references node on delete cascade,
      cluster_id text not null references cluster on delete cascade,
      node_task_id text,
      tries integer not null default 0,
      result jsonb,
      primary key (task_id, node_id)
    );
    create index prefetch_node_node on prefetch_node (node_id);
    create index prefetch_node_cluster on prefetch_node (cluster_id);
    create index prefetch_node_open on prefetch_node (task_id) where result is null;
  `);
}
