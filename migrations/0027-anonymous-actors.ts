// Who is refused before signing in is an actor of its own in the audit log; until now it was the console itself.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    update audit_entry set actor_type = 'anonymous', actor_name = null
     where actor_type = 'system' and actor_id is null and actor_name = 'anonymous';
  `);
}
