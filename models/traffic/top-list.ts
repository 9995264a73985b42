// Top lists: nodes' lists of a minute are noted, and added to those of five minutes, hours and days once these minutes are over.
// What falls off the end of a list is forgotten, so counts are at least that high.
import type { Knex } from 'knex';
import type { PoolClient } from 'pg';
import { copyIn, minuteTexts } from '../db/copy-in.ts';
import { inPieces, type Rest } from '../db/in-pieces.ts';
import { startOf } from './traffic-columns.ts';

/** Numbers as TopList of the messages has them. */
export const TOP_LISTS = { url: 1, address: 2, country: 3, network: 4, referrer: 5 } as const;
export type TopListName = keyof typeof TOP_LISTS;
/** Countries are all kept; of the other lists so many keys. */
const KEPT_COUNTRIES = 250;
export const LISTED = 50;

/** Lengths of lists in seconds, with the days for which they and so many of their keys are kept. */
const LEVELS = [
  { seconds: 300, days: 1, keys: 100 },
  { seconds: 3600, days: 8, keys: 100 },
  { seconds: 86_400, days: 365, keys: LISTED },
] as const;
export type ListSeconds = (typeof LEVELS)[number]['seconds'];

export interface TopMark {
  /** Site or cluster; '' of all sites. */
  subject: string;
  list: number;
  /** Milliseconds of the start of the minute. */
  minute: number;
  /** JSON of requests and bytes by key. */
  items: string;
}

export interface TopKey {
  key: string;
  requests: number;
  bytesSent: number;
}

const MARKS_AT_ONCE = 2_000;
const DELETED_AT_ONCE = 5_000;
const MOST_TURNS = 1_000;
/** Lists of a window come until so long after it. */
const LATENCY = `interval '2 minutes'`;
const LOCK_LISTS = 'select pg_advisory_xact_lock(1398162180, 5)';
const timeOf = (ms: number) => `timestamptz '${new Date(ms).toISOString()}'`;

export async function appendTopMarks(client: PoolClient, marks: readonly TopMark[]): Promise<void> {
  if (marks.length === 0) return;
  const minuteOf = minuteTexts();
  const rows = marks.map(({ subject, list, minute, items }) => [subject, list, minuteOf(minute), items]);
  await copyIn(client, 'top_mark', ['site_id', 'list', 'minute', 'items'], rows);
}

/** Adds marks of windows that are over by `now` to the lists, each once. Answers whether there may be more. */
async function takeTopMarks(sql: Knex, now: Date): Promise<boolean> {
  return sql.transaction(async (trx) => {
    await trx.raw(LOCK_LISTS);
    const { rows } = await trx.raw<{ rows: { taken: number }[] }>(
      `with taken as (
         delete from top_mark where mark = any(array(
           select mark from top_mark where minute < ${startOf(300, `:now::timestamptz - ${LATENCY}`)}
            order by mark limit ${MARKS_AT_ONCE}))
         returning site_id, list, minute, items),
       keyed as materialized (
         select site_id, list, minute, key, sum((value->>0)::numeric) as n, sum((value->>1)::numeric) as b
           from taken, jsonb_each(items) group by 1, 2, 3, 4),
       ${LEVELS.map(added).join(', ')}
       select count(*)::int as taken from taken`,
      { now } as never,
    );
    return rows[0]!.taken === MARKS_AT_ONCE;
  });
}

function added({ seconds, days, keys }: (typeof LEVELS)[number]): string {
  return `fresh_${seconds} as materialized (
      select site_id, list, ${startOf(seconds, 'minute')} as starts_at, key, sum(n) as n, sum(b) as b from keyed
       where minute >= :now::timestamptz - interval '${days} days' group by 1, 2, 3, 4),
    both_${seconds} as (
      select * from fresh_${seconds}
      union all select l.site_id, l.list, l.starts_at, i.key, (i.value->>0)::numeric, (i.value->>1)::numeric
        from (select distinct site_id, list, starts_at from fresh_${seconds}) f
        join top_list l on l.seconds = ${seconds} and (l.site_id, l.list, l.starts_at) = (f.site_id, f.list, f.starts_at),
        jsonb_each(l.items) i),
    ranked_${seconds} as (
      select site_id, list, starts_at, key, sum(n) as n, sum(b) as b,
          row_number() over (partition by site_id, list, starts_at order by sum(n) desc, key) as place
        from both_${seconds} group by 1, 2, 3, 4),
    into_${seconds} as (
      insert into top_list as t (site_id, list, seconds, starts_at, items)
        select site_id, list, ${seconds}, starts_at, jsonb_object_agg(key, jsonb_build_array(n, b)) from ranked_${seconds}
         where place <= case when list = ${TOP_LISTS.country} then ${KEPT_COUNTRIES} else ${keys} end
         group by 1, 2, 4 order by 1, 2, 4
        on conflict (site_id, list, seconds, starts_at) do update set items = excluded.items)`;
}

/** Adds all marks of windows that are over to the lists. `signal` ends it early; without `rest` it goes on at once. */
export async function takeAllTopMarks(sql: Knex, now: Date, signal?: AbortSignal, rest?: Rest): Promise<void> {
  await inPieces(() => takeTopMarks(sql, now), signal, rest);
}

/** Lists of so many seconds are read for periods of at most so many. */
const LONGEST: Readonly<Record<ListSeconds, number>> = {
  300: 6 * 3600,
  3600: 8 * 86_400,
  86400: Number.POSITIVE_INFINITY,
};

/** Length of the lists to read of a period, in milliseconds as the time: few of them, and kept. */
export function listSecondsOf({ from, to }: { from: number; to: number }, now: number): ListSeconds {
  const fits = ({ seconds, days }: (typeof LEVELS)[number]) =>
    to - from <= LONGEST[seconds] * 1000 && now - from <= days * 86_400_000;
  return (LEVELS.find(fits) ?? LEVELS[2]).seconds;
}

/** Keys with the most requests between two times in milliseconds, also of minutes that are in no list yet. */
export async function topKeys(
  sql: Knex,
  {
    subject,
    list,
    seconds,
    from,
    to,
    limit,
  }: {
    /** Site or cluster; '' for all sites. */
    subject: string;
    list: TopListName;
    seconds: ListSeconds;
    from: number;
    to: number;
    limit: number;
  },
): Promise<TopKey[]> {
  const ofList = `site_id = :subject and list = ${TOP_LISTS[list]}`;
  const { rows } = await sql.raw<{ rows: TopKey[] }>(
    `select key, sum((value->>0)::numeric)::float8 as requests, sum((value->>1)::numeric)::float8 as "bytesSent" from (
       select items from top_list
        where ${ofList} and seconds = ${seconds} and starts_at >= ${timeOf(from)} and starts_at < ${timeOf(to)}
       union all select items from top_mark
        where ${ofList} and minute >= ${timeOf(from)} and minute < ${timeOf(to)}) l, jsonb_each(items)
      group by key order by 2 desc, key limit :limit`,
    { subject, limit } as never,
  );
  return rows;
}

/** Deletes lists that are too old. */
export async function deleteOldTopLists(sql: Knex, now: Date): Promise<void> {
  for (const { seconds, days } of LEVELS) {
    const before = new Date(now.getTime() - days * 86_400_000);
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const { rowCount } = await sql.raw<{ rowCount: number }>(
        `delete from top_list where ctid = any(array(
           select ctid from top_list where seconds = ${seconds} and starts_at < ? limit ${DELETED_AT_ONCE}))`,
        [before],
      );
      if (rowCount < DELETED_AT_ONCE) break;
    }
  }
}
