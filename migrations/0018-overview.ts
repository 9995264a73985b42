// What the overview shows without reading everything: how changes reached the nodes, and requests per cluster and minute.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- One row a change, written once by each channel process that has nodes of it, when they all have it or never will:
    -- counts of processes add up. cluster_id '' = a ban of all clusters.
    create table propagation (
      feed text not null check (feed in ('config', 'bans')),
      cluster_id text not null,
      epoch bigint not null,
      number bigint not null,
      published_at timestamptz not null,
      -- Connected when it was pushed, and those of them that have it.
      nodes integer not null,
      reached integer not null,
      -- From the publication to the last node that has it; null when none has.
      slowest_ms double precision,
      slowest_node_id text,
      primary key (feed, cluster_id, epoch, number)
    ) with (fillfactor = 70);
    create index propagation_newest on propagation (feed, published_at desc);

    -- Sums of site_request_minute, kept beside it.
    create table cluster_request_minute (
      cluster_id text not null references cluster on delete cascade,
      minute timestamptz not null,
      requests bigint not null,
      primary key (cluster_id, minute)
    ) with (fillfactor = 50);
    create index cluster_request_minute_age on cluster_request_minute (minute);
    insert into cluster_request_minute (cluster_id, minute, requests)
      select s.cluster_id, m.minute, sum(m.requests) from site_request_minute m join site s on s.id = m.site_id
       where m.minute > now() - interval '1 day' group by 1, 2;
  `);
}
