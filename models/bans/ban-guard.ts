// What bans are checked against may not change between check and commit: creators of bans hold the guard together,
// writers of allow lists and the limit hold it alone. Addresses of nodes come without it (node-address.ts): heartbeats
// would hold up every ban.
import type { Knex } from 'knex';

/** For creators of bans. What is read after it, in a later statement, is complete and stays so. */
export async function shareBanGuard(sql: Knex): Promise<void> {
  await sql.raw('select 1 from ban_guard for share');
}

/**
 * For writers of what bans are checked against; in a transaction. The lock of the table: who comes while one of the row is
 * waited for still shares it, so that under a flood of bans an allow list could not be saved.
 */
export async function holdBanGuard(sql: Knex): Promise<void> {
  await sql.raw('lock table ban_guard in exclusive mode');
}
