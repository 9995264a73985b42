// The key of the marks that prove positions of nodes; the console makes it at its next start and seals it.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw('alter table console_state add column mark_key text');
}
