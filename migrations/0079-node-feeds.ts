// Where nodes are in feeds by name. Feeds are registered by the folders of the console: their names are no list of the database.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    create table node_feed (
      node_id text not null references node on delete cascade,
      feed text not null check (feed ~ '^[a-z][a-z0-9-]{0,31}$'),
      epoch bigint not null,
      sequence bigint not null,
      reached_at timestamptz not null,
      primary key (node_id, feed)
    ) with (fillfactor = 80)
  `);
}
