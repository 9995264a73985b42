// Minutes that are old enough take one row of each site, cluster and window of five minutes.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- What was moved out of usage_minute. Rows of one site, cluster and window add up, like those of minutes.
    create table usage_window (
      window_start timestamptz not null,
      site_id text not null,
      cluster_id text not null,
      requests numeric not null,
      bytes_sent numeric not null,
      bytes_received numeric not null,
      statuses jsonb,
      counts jsonb,
      latency numeric[]
    ) partition by range (window_start);
    create index usage_window_place on usage_window (window_start, site_id);

    -- All that is counted, each once; the minute of what was moved is the first of its window.
    create view usage_counted as
      select minute, site_id, cluster_id, requests::numeric, bytes_sent::numeric, bytes_received::numeric,
          statuses, counts, latency::numeric[]
        from usage_minute
      union all
      select window_start, site_id, cluster_id, requests, bytes_sent, bytes_received, statuses, counts, latency
        from usage_window;
  `);
}
