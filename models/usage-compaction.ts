// Old minutes become windows: minutes are rows of every second in which a process stored something of them, hundreds
// for each of a site's windows.
import type { Knex } from 'knex';

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

/**
 * Moves the minutes of a window to one row of each site and cluster, with those that were moved before. One statement:
 * whatever ends it, everything is there once, and a sum over both tables never differs. What is appended meanwhile stays for
 * the next time.
 */
export async function compactWindow(sql: Knex, start: Date, { part, of }: SitePart): Promise<void> {
  const place = 'site_id, cluster_id';
  const sums = (column: string, name: string) => `
    select ${place}, jsonb_object_agg(key, total) as ${name} from (
      select ${place}, key, sum(value::numeric) as total from rows_, jsonb_each_text(${column}) group by ${place}, key) s
     group by ${place}`;
  await sql.raw(
    `with taken as (
       delete from usage_minute where minute >= :start::timestamptz and minute < :start::timestamptz + ${WINDOW}
           and (hashtext(site_id) & 1023) % :of = :part
         returning ${place}, requests, bytes_sent, bytes_received, statuses, counts, latency
     ), before as (
       delete from usage_window where window_start = :start::timestamptz and (${place}) in (select ${place} from taken)
         returning ${place}, requests, bytes_sent, bytes_received, statuses, counts, latency
     ), rows_ as materialized (
       select ${place}, requests::numeric, bytes_sent::numeric, bytes_received::numeric, statuses, counts,
           latency::numeric[] from taken
       union all select * from before
     ), amounts as (
       select ${place}, sum(requests) as requests, sum(bytes_sent) as bytes_sent, sum(bytes_received) as bytes_received
         from rows_ group by ${place}
     ), by_status as (${sums('statuses', 'statuses')}
     ), by_name as (${sums('counts', 'counts')}
     ), by_time as (
       select ${place}, array_agg(total order by bucket) as latency from (
         select ${place}, bucket, sum(count) as total
           from rows_, unnest(latency) with ordinality as l(count, bucket) group by ${place}, bucket) s
        group by ${place}
     )
     insert into usage_window
         (window_start, ${place}, requests, bytes_sent, bytes_received, statuses, counts, latency)
       select :start::timestamptz, ${place}, requests, bytes_sent, bytes_received, statuses, counts, latency
         from amounts left join by_status using (${place}) left join by_name using (${place})
           left join by_time using (${place})
        order by site_id, cluster_id`,
    { start, part, of } as never,
  );
}
