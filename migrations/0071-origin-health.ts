// Origins of which something is wrong, as each node reported with its last heartbeat.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`alter table node_state add column origin_health jsonb not null default '{"cut":false,"sites":{}}'`);
}
