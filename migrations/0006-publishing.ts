// The history of publications and bans; what they do under locks is in functions/.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- The history begins here unless the process did it already.
    insert into console_state (epoch, system_identifier, timeline)
    select (extract(epoch from clock_timestamp()) * 1000)::bigint,
      (select system_identifier::text from pg_control_system()),
      (select timeline_id from pg_control_checkpoint())
    on conflict do nothing;

    alter table ban_change add column changed_at timestamptz not null default clock_timestamp();
  `);
}
