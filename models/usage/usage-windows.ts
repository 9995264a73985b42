// Roll-ups of usage: what was appended is noted, closed windows are summed again, and how far all of it is complete.
import type { Knex } from 'knex';
import { LATEST_DAYS } from '../traffic/traffic-columns.ts';
import { readUsageSettings } from './usage-setting.ts';
import { DAY_SECONDS, HOUR_SECONDS, startOf, WINDOW_SECONDS } from './usage-totals.ts';

/** The order of usage sequence numbers is that of commits. Nothing else is locked while it is held. */
export const LOCK_USAGE = 'select pg_advisory_xact_lock(1398162180, 2)';
const MARKS_AT_ONCE = 50_000;
/** Lengths of what usage of all sites is summed by, in seconds. */
const TOTALS = [WINDOW_SECONDS, HOUR_SECONDS, DAY_SECONDS].join(', ');
const WINDOW = `interval '5 minutes'`;
const windowOf = (column: string) => `date_bin(${WINDOW}, ${column}, timestamptz '2000-01-01 00:00:00+00')`;
/** Requests of a cluster are shown of a day. */
const CLUSTER_MINUTES_KEPT = `interval '7 days'`;

/**
 * Notes what was appended: requests of clusters are added, windows wait for recomputation, for usage and for statistics. Answers how many marks it
 * took; fewer than 50,000: there are no more. May run in several processes at once.
 */
export async function takeUsageMarks(sql: Knex): Promise<number> {
  const { rows } = await sql.raw<{ rows: { taken: number }[] }>(
    `with taken as (
       delete from usage_mark where id = any(array(
         select id from usage_mark order by id limit ${MARKS_AT_ONCE} for update skip locked))
       returning cluster_id, minute, requests
     ), traffic as (
       insert into cluster_request_minute as m (cluster_id, minute, requests)
         select t.cluster_id, t.minute, sum(t.requests) from taken t join cluster c on c.id = t.cluster_id
          where t.requests > 0 and t.minute > now() - ${CLUSTER_MINUTES_KEPT} group by 1, 2 order by 1, 2
         on conflict (cluster_id, minute) do update set requests = m.requests + excluded.requests
     ), waiting as (
       insert into usage_dirty as d (window_start) select distinct ${windowOf('minute')} from taken order by 1
         on conflict (window_start) do update set generation = d.generation + 1
     ), traffic_waiting as (
       insert into traffic_dirty as d (window_start) select distinct ${windowOf('minute')} from taken
          where minute > now() - interval '${LATEST_DAYS} days' order by 1
         on conflict (window_start) do update set generation = d.generation + 1
     )
     select count(*)::int as taken from taken`,
  );
  return rows[0]!.taken;
}

export async function takeAllUsageMarks(sql: Knex, signal?: AbortSignal): Promise<void> {
  while ((await takeUsageMarks(sql)) === MARKS_AT_ONCE) if (signal?.aborted) return;
}

/**
 * Sums closed windows that wait again, the oldest first, at most so many; values that changed make or revise records,
 * others change nothing. Answers whether there may be more. May run in several processes at once.
 */
export async function recomputeUsage(sql: Knex, windows: number): Promise<boolean> {
  return sql.transaction(async (trx) => {
    await trx.raw(LOCK_USAGE);
    const { rows: waiting } = await trx.raw<{ rows: { start: Date; generation: string }[] }>(
      `select window_start as start, generation from usage_dirty where window_start + ${WINDOW} <= now()
        order by window_start limit ?`,
      [windows],
    );
    if (waiting.length === 0) return false;
    const starts = waiting.map(({ start }) => start);
    await writeRecords(trx, starts);
    // What was noted since is another generation, and waits on.
    await trx.raw(
      `delete from usage_dirty d using unnest(?::timestamptz[], ?::bigint[]) as w(start, generation)
        where d.window_start = w.start and d.generation = w.generation`,
      [starts, waiting.map(({ generation }) => generation)],
    );
    return waiting.length === windows;
  });
}

/**
 * Makes or revises the records that differ, and adds the differences to the sums of their hours and days and of all sites:
 * what that costs depends on the sites whose counts changed. A window whose week was dropped has no minutes either.
 */
async function writeRecords(trx: Knex, starts: readonly Date[]): Promise<void> {
  await trx.raw(
    `with summed as materialized (
       select w.start, m.* from unnest(?::timestamptz[]) as w(start) cross join lateral (
         select site_id, sum(requests) as requests, sum(bytes_sent) as sent, sum(bytes_received) as received
           from usage_counted where minute >= w.start and minute < w.start + ${WINDOW} and site_id <> '' group by site_id) m
     ), differing as materialized (
       select s.*, s.requests - coalesce(r.requests, 0) as more_requests, s.sent - coalesce(r.bytes_sent, 0) as more_sent,
           s.received - coalesce(r.bytes_received, 0) as more_received
         from summed s left join usage_record r on r.window_start = s.start and r.site_id = s.site_id
        where (r.requests, r.bytes_sent, r.bytes_received) is distinct from (s.requests, s.sent, s.received)
          and (r.site_id is not null or s.requests > 0 or s.sent > 0 or s.received > 0)
        order by s.start, s.site_id
     ), written as (
       insert into usage_record as r
           (window_start, site_id, requests, bytes_sent, bytes_received, revision, seq, updated_at)
         select start, site_id, requests, sent, received, 1, nextval('usage_seq'), clock_timestamp() from differing
         on conflict (window_start, site_id) do update set requests = excluded.requests, bytes_sent = excluded.bytes_sent,
           bytes_received = excluded.bytes_received, revision = r.revision + 1, seq = excluded.seq,
           updated_at = excluded.updated_at
     ), hours as (${addTo('usage_hour', 'starts_at, site_id', `date_trunc('hour', start, 'UTC'), site_id`, 'differing')}
     ), days as (${addTo('usage_day', 'starts_at, site_id', `date_trunc('day', start, 'UTC'), site_id`, 'differing')}
     ), of_all as (
       select start, sum(more_requests) as more_requests, sum(more_sent) as more_sent, sum(more_received) as more_received
         from differing group by start
     )
     ${addTo('usage_total', 'seconds, starts_at', `seconds, ${startOf('seconds', 'start')}`, `of_all cross join unnest(array[${TOTALS}]) as seconds`)}`,
    [starts] as never,
  );
}

/** Adds differences to the sums of a table with this key; `values` are those of the key in `source`. */
function addTo(table: string, key: string, values: string, source: string): string {
  return `insert into ${table} as p (${key}, requests, bytes_sent, bytes_received)
       select ${values}, sum(more_requests), sum(more_sent), sum(more_received) from ${source} group by 1, 2 order by 1, 2
       on conflict (${key}) do update set requests = p.requests + excluded.requests,
         bytes_sent = p.bytes_sent + excluded.bytes_sent, bytes_received = p.bytes_received + excluded.bytes_received`;
}

/**
 * Stores up to when windows are complete, forward only: the least of what enabled nodes with a heartbeat within the offline
 * threshold have told (since their enrolment, where they told nothing; the threshold ago, where it is longer ago), and
 * of windows that wait for recomputation.
 */
export async function moveCompleteUntil(sql: Knex): Promise<void> {
  const { offlineThresholdMinutes } = await readUsageSettings(sql);
  await sql.raw(
    `with nodes as (
       select min(greatest(coalesce(c.watermark, n.enrolled_at), t.since)) as until
         from (select now() - make_interval(mins => ?) as since) t
         cross join node n join node_state s on s.node_id = n.id left join usage_cursor c on c.node_id = n.id
        where n.status = 'active' and s.last_seen_at >= t.since
     ), waiting as (
       select least((select min(window_start) from usage_dirty), (select min(minute) from usage_mark)) as until
     )
     update usage_state set complete_until = greatest(complete_until, ${windowOf('least(nodes.until, waiting.until)')})
       from nodes, waiting where nodes.until is not null`,
    [offlineThresholdMinutes],
  );
}
