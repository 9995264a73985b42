// Sums of nodes, of clusters and of all sites: what is stored is noted, and added to the sums a moment later.
import type { Knex } from 'knex';
import type { PoolClient } from 'pg';
import { copyIn, minuteTexts } from '../db/copy-in.ts';
import { inPieces, type Rest } from '../db/in-pieces.ts';
import { ADD, AMOUNTS, LEVELS, list, startOf } from './traffic-columns.ts';

export interface TrafficMark {
  kind: 'all' | 'cluster' | 'node';
  /** '' of all. */
  id: string;
  /** Milliseconds of the start of the minute. */
  minute: number;
  /** In the order of {@link AMOUNTS}; texts of what may be beyond 2^53. */
  amounts: readonly (number | string)[];
  /** JSON of counts by key; null: none. */
  figures: string | null;
}

/** Twenty thousand kept a core busy for a third of a second, which bans beside them waited for. */
const MARKS_AT_ONCE = 2_000;
const COLUMNS = ['kind', 'id', 'minute', ...AMOUNTS, 'figures'];

export async function appendTrafficMarks(client: PoolClient, marks: readonly TrafficMark[], rest: Rest): Promise<void> {
  if (marks.length === 0) return;
  const minuteOf = minuteTexts();
  for (let at = 0; at < marks.length; at += MARKS_AT_ONCE) {
    const begun = performance.now();
    const rows = marks
      .slice(at, at + MARKS_AT_ONCE)
      .map(({ kind, id, minute, amounts, figures }) => [kind, id, minuteOf(minute), ...amounts, figures]);
    await copyIn(client, 'traffic_mark', COLUMNS, rows);
    await rest(performance.now() - begun);
  }
}

const TAKE = `delete from traffic_mark where mark = any(array(
  select mark from traffic_mark order by mark limit ${MARKS_AT_ONCE} for update skip locked)) returning *`;

/** Adds marks to the sums, each once. Answers whether there may be more. */
async function takeTrafficMarks(sql: Knex): Promise<boolean> {
  const levels = Object.entries(LEVELS).map(([seconds, table]) => added(Number(seconds), table));
  const { rows } = await sql.raw<{ rows: { taken: number }[] }>(
    `with taken as (${TAKE}),
       keyed as materialized (
         select kind, id, minute, key, sum(value::numeric) as n from taken, jsonb_each_text(figures) group by 1, 2, 3, 4),
       ${levels.join(', ')}
     select count(*)::int as taken from taken`,
  );
  return rows[0]!.taken === MARKS_AT_ONCE;
}

function added(seconds: number, table: string): string {
  return `into_${table} as (
    insert into ${table} as t (kind, id, starts_at, ${AMOUNTS.join(', ')}, figures)
      select kind, id, start, ${AMOUNTS.join(', ')}, figures from (
        select kind, id, ${startOf(seconds, 'minute')} as start, ${list((amount) => `sum(${amount}) as ${amount}`)}
          from taken group by 1, 2, 3) a
      left join (
        select kind, id, start, jsonb_object_agg(key, n) as figures from (
          select kind, id, ${startOf(seconds, 'minute')} as start, key, sum(n) as n from keyed group by 1, 2, 3, 4) k
         group by 1, 2, 3) f using (kind, id, start)
      order by kind, id, start
    ${ADD})`;
}

/** Adds all marks to the sums. `signal` ends it early; without `rest` it goes on at once. */
export async function takeAllTrafficMarks(sql: Knex, signal?: AbortSignal, rest?: Rest): Promise<void> {
  await inPieces(() => takeTrafficMarks(sql), signal, rest);
}
