// Top lists: what each site, and all sites with the id '', were asked for most and by whom.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- What was stored and is in no list yet. items: {"key": [requests, bytes]}. list as TopList of the messages has it.
    create table top_mark (
      mark bigint generated always as identity primary key,
      site_id text not null,
      list smallint not null,
      minute timestamptz not null,
      items jsonb not null
    );
    create index top_mark_site on top_mark (site_id, list);
    create table top_list (
      site_id text not null,
      list smallint not null,
      seconds integer not null check (seconds in (300, 3600, 86400)),
      starts_at timestamptz not null,
      items jsonb not null,
      primary key (site_id, list, seconds, starts_at)
    );
    create index top_list_age on top_list (seconds, starts_at);
  `);
}
