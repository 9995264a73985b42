// Old minutes become windows: minutes are rows of every second in which a process stored something of them, hundreds
// for each of a site's windows.
import type { Knex } from 'knex';
import { LATENCY_BOUNDS_MS } from '../../contract/latency-buckets.ts';

const WINDOW = `interval '5 minutes'`;
const windowOf = (column: string) => `date_bin(${WINDOW}, ${column}, timestamptz '2000-01-01 00:00:00+00')`;

/** Start of the first window from `from` on that has minutes before `before`; null: there is none. */
export async function firstUncompacted(sql: Knex, from: Date, before: Date): Promise<Date | null> {
  const { rows } = await sql.raw<{ rows: { start: Date | null }[] }>(
    `select ${windowOf('min(minute)')} as start from usage_minute where minute >= ? and minute < ?`,
    [from, before],
  );
  return rows[0]!.start;
}

/** Sites of a window that are compacted together: those of one of `of` parts. */
export interface SitePart {
  part: number;
  of: number;
}

const PLACE = 'site_id, cluster_id';
const CACHED = 'cache_hits, cache_misses, cache_hit_bytes';
/** Sums of rows: amounts, and buckets as far as there are any. */
const AMOUNTS = `${PLACE}, sum(requests) as requests, sum(bytes_sent) as bytes_sent, sum(bytes_received) as bytes_received,
  sum(cache_hits) as cache_hits, sum(cache_misses) as cache_misses, sum(cache_hit_bytes) as cache_hit_bytes,
  nullif(array_remove(array[${Array.from(
    { length: LATENCY_BOUNDS_MS.length + 1 },
    (_, bucket) => `sum(latency[${bucket + 1}])`,
  ).join()}], null), '{}') as latency`;
const sumsOf = (counts: 'statuses' | 'counts') => `
  select ${PLACE}, jsonb_object_agg(key, total) as ${counts} from (
    select ${PLACE}, key, sum(value::numeric) as total
      from (select ${PLACE}, ${counts} from taken union all select ${PLACE}, ${counts} from before) r, jsonb_each(${counts})
     group by ${PLACE}, key) s
   group by ${PLACE}`;

/**
 * Moves the minutes of a window to one row of each site and cluster, with those that were moved before. One statement:
 * whatever ends it, everything is there once, and a sum over both tables never differs. What is appended meanwhile stays for
 * the next time.
 */
export async function compactWindow(sql: Knex, start: Date, { part, of }: SitePart): Promise<void> {
  await sql.raw(
    `with taken as (
       delete from usage_minute where minute >= :start::timestamptz and minute < :start::timestamptz + ${WINDOW}
           and (hashtext(site_id) & 1023) % :of = :part
         returning ${PLACE}, requests, bytes_sent, bytes_received, ${CACHED}, latency, statuses, counts
     ), summed as materialized (
       select ${AMOUNTS} from taken group by ${PLACE}
     ), before as (
       delete from usage_window where window_start = :start::timestamptz and (${PLACE}) in (select ${PLACE} from summed)
         returning ${PLACE}, requests, bytes_sent, bytes_received, ${CACHED}, latency, statuses, counts
     ), amounts as (
       select ${AMOUNTS} from (
         select * from summed
         union all select ${PLACE}, requests, bytes_sent, bytes_received, ${CACHED}, latency from before) r
        group by ${PLACE}
     ), by_status as (${sumsOf('statuses')}
     ), by_name as (${sumsOf('counts')}
     )
     insert into usage_window
         (window_start, ${PLACE}, requests, bytes_sent, bytes_received, ${CACHED}, statuses, counts, latency)
       select :start::timestamptz, ${PLACE}, requests, bytes_sent, bytes_received, ${CACHED}, statuses, counts, latency
         from amounts left join by_status using (${PLACE}) left join by_name using (${PLACE})
        order by ${PLACE}`,
    { start, part, of } as never,
  );
}
