// The settings that entries were compiled from, by the hash of their canonical JSON. Null: the kind gives none, or the
// entry is older than this table.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table config_settings (
      hash bytea primary key,
      settings text not null check (settings is json object),
      touched_at timestamptz not null default now()
    );
    create index config_settings_touched on config_settings (touched_at);
    alter table config_entry add column settings_hash bytea references config_settings;
    create index config_entry_settings on config_entry (settings_hash) where settings_hash is not null;
  `);
}
