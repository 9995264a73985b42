// What the cache did for a site in a minute, in the rows that have its requests.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Requests that got a stored response, those that did not, and the part of bytes_sent that hits got.
    alter table usage_minute
      add column cache_hits bigint not null default 0,
      add column cache_misses bigint not null default 0,
      add column cache_hit_bytes bigint not null default 0;
    alter table usage_window
      add column cache_hits numeric not null default 0,
      add column cache_misses numeric not null default 0,
      add column cache_hit_bytes numeric not null default 0;
    create or replace view usage_counted as
      select minute, site_id, cluster_id, requests::numeric, bytes_sent::numeric, bytes_received::numeric,
          statuses, counts, latency::numeric[], cache_hits::numeric, cache_misses::numeric, cache_hit_bytes::numeric
        from usage_minute
      union all
      select window_start, site_id, cluster_id, requests, bytes_sent, bytes_received, statuses, counts, latency,
          cache_hits, cache_misses, cache_hit_bytes
        from usage_window;
  `);
}
