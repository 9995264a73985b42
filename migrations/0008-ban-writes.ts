// The automatic bans in force, which the protected addresses and lists of bans ask for; creating bans is in functions/.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create index ban_automatic_active on ban (cluster_id, expires_at) where source = 'auto' and lifted_at is null;
  `);
}
