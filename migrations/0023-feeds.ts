// Feeds are registered by the console's folders: their names are no list of the database. A row of the outbox that no
// relay knows has an age.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    alter table propagation drop constraint propagation_feed_check;
    alter table propagation add constraint propagation_feed_check check (feed ~ '^[a-z][a-z0-9-]{0,31}$') not valid;
    alter table outbox add column created_at timestamptz not null default now();
  `);
}
