// How requests to origins fared in the last minute, as each node reported with its last heartbeat.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`alter table node_state add column origin_traffic jsonb not null default '{}'`);
}
