// Tables in weeks: partitions that are made ahead, and dropped when nothing of them is young enough any more.
import type { Knex } from 'knex';

const DAY_MS = 86_400_000;
export const WEEK_MS = 7 * DAY_MS;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
const NAME = /_(\d{4})(\d{2})(\d{2})$/;

export interface Week {
  name: string;
  /** Milliseconds of its first moment. */
  start: number;
}

/** Weeks that the table has, the oldest first. */
export async function weeksOf(sql: Knex, table: string): Promise<Week[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    'select relid::text as name from pg_partition_tree(?::regclass) where isleaf order by 1',
    [table],
  );
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = NAME.exec(name) ?? [];
    return year ? [{ name, start: Date.UTC(Number(year), Number(month) - 1, Number(day)) }] : [];
  });
}

/** First moment of the week. */
export function weekOf(at: number): number {
  return Math.floor((at - FIRST_MONDAY_MS) / WEEK_MS) * WEEK_MS + FIRST_MONDAY_MS;
}

/** Makes the weeks from one to another, those first moments included, that are not there. */
export async function makeWeeks(sql: Knex, table: string, from: number, until: number): Promise<void> {
  const there = new Set((await weeksOf(sql, table)).map(({ start }) => start));
  for (let week = from; week <= until; week += WEEK_MS) {
    if (!there.has(week)) await sql.raw('select usage_partition(?, ?::date)', [table, dayOf(week)]);
  }
}

/** Drops the weeks that end at or before a time, in milliseconds; answers their names. */
export async function dropWeeks(sql: Knex, table: string, keepFrom: number): Promise<string[]> {
  const old = (await weeksOf(sql, table)).filter(({ start }) => start + WEEK_MS <= keepFrom);
  for (const { name } of old) {
    await sql.transaction(async (trx) => {
      // Readers and writers of other weeks wait behind this lock: better try again later than let them queue.
      await trx.raw(`set local lock_timeout = '2s'`);
      await trx.raw('drop table if exists ??', [name]);
    });
  }
  return old.map(({ name }) => name);
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
