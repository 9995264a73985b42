// Entries of the audit log by the name of who acted; the names there are are stepped through in it.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw('create index audit_entry_actor_name on audit_entry (actor_name, occurred_at desc, id desc)');
}
