// Sites that fail for many visitors, as each node reported with its last heartbeat.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`alter table node_state add column failing_sites jsonb not null default '[]'`);
}
