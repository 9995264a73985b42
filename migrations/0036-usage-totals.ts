// Sums of usage over all sites: a page about all of them must not read every site's.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- One row for each window (300), hour (3600) and UTC day (86400) with traffic, written with what it is the sum of.
    create table usage_total (
      seconds integer not null,
      starts_at timestamptz not null,
      requests numeric not null,
      bytes_sent numeric not null,
      bytes_received numeric not null,
      primary key (seconds, starts_at)
    );
    insert into usage_total
      select 300, window_start, sum(requests), sum(bytes_sent), sum(bytes_received) from usage_record group by 2;
    insert into usage_total
      select 3600, starts_at, sum(requests), sum(bytes_sent), sum(bytes_received) from usage_hour group by 2;
    insert into usage_total
      select 86400, starts_at, sum(requests), sum(bytes_sent), sum(bytes_received) from usage_day group by 2;

    -- Usage of a deleted site is shown under the name that it had; '' where it was deleted before.
    alter table deleted_site add column name text not null default '';
  `);
}
