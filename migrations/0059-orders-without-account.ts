// An order of a certificate whose request names no account fails by itself, and begins for that.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw('alter table acme_order alter account_id drop not null');
}
