// Sites are counted by cluster for the overview, from an index that holds nothing else.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw('create index site_enabled on site (cluster_id, enabled)');
}
