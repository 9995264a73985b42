// What nodes counted of the cache, and how full it is.
import type { Knex } from 'knex';
import type { CacheUsageSums } from '../../contract/resources/cache-usage.ts';

export interface CacheUsagePoint extends CacheUsageSums {
  /** Milliseconds. */
  start: number;
}

const ROWS = 'cache_hits, cache_misses, cache_hit_bytes, bytes_sent';

/** Sums of a site by steps of so many seconds, a multiple of five minutes: those with traffic, in order. */
export async function siteCachePoints(
  sql: Knex,
  siteId: string,
  { from, to, seconds }: { from: Date; to: Date; seconds: number },
): Promise<CacheUsagePoint[]> {
  // Windows are looked up one by one: their index begins with the time.
  const { rows } = await sql.raw<{ rows: CacheUsagePoint[] }>(
    `select date_part('epoch', date_bin(make_interval(secs => :seconds), at, 'epoch')) * 1000 as start,
        sum(cache_hits)::float8 as hits, sum(cache_misses)::float8 as misses,
        sum(cache_hit_bytes)::float8 as "hitBytes", sum(bytes_sent)::float8 as "bytesSent"
       from (select minute as at, ${ROWS} from usage_minute where site_id = :siteId and minute >= :from and minute < :to
         union all select g, w.* from generate_series(:from::timestamptz, :to::timestamptz - interval '5 minutes', interval '5 minutes') g
          cross join lateral (
            select ${ROWS} from usage_window where window_start = g and site_id = :siteId offset 0) w) c
      group by 1 order by 1`,
    { siteId, from, to, seconds } as never,
  );
  return rows;
}

export interface ZoneUsage {
  usedBytes: number;
  maxBytes: number;
  nodes: number;
}

/** Sums over the active nodes of a cluster that have reported their cache. */
export async function zoneUsage(sql: Knex, clusterId: string): Promise<ZoneUsage> {
  const { rows } = await sql.raw<{ rows: ZoneUsage[] }>(
    `select coalesce(sum((s.cache_usage ->> 'usedBytes')::numeric), 0)::float8 as "usedBytes",
        coalesce(sum((s.cache_usage ->> 'maxBytes')::numeric), 0)::float8 as "maxBytes", count(*)::int as nodes
       from node n join node_state s on s.node_id = n.id
      where n.cluster_id = ? and n.status = 'active' and s.cache_usage is not null`,
    [clusterId],
  );
  return rows[0]!;
}
