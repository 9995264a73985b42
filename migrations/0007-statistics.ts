// Requests per site and minute as nodes report them, and which batches were counted already.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Summed over nodes; kept for days, not for bills.
    create table site_request_minute (
      site_id text not null,
      minute timestamptz not null,
      requests bigint not null,
      primary key (site_id, minute)
    ) with (fillfactor = 70);
    create index site_request_minute_age on site_request_minute using brin (minute);

    -- Highest batch a node reported: one that comes twice counts once.
    create table node_statistics (
      node_id text primary key references node on delete cascade,
      sequence bigint not null
    ) with (fillfactor = 50);
  `);
}
