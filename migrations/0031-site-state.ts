// Sites of a cluster by whether they are enabled, newest first: what lists filtered by state and the overview read.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index site_of_cluster on site (cluster_id, enabled, id);
    drop index site_enabled;
  `);
}
