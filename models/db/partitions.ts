// Tables that are partitioned by time, in whole days or weeks (UTC): partitions are made ahead, and dropped when they hold
// nothing young enough any more.
import type { Knex } from 'knex';

export const DAY_MS = 86_400_000;
const DAYS_OF_WEEK = 7;
export const WEEK_MS = DAYS_OF_WEEK * DAY_MS;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
const NAME = /_(\d{4})(\d{2})(\d{2})$/;

/** A table with the length of its partitions. */
export interface Partitioned {
  table: string;
  /** 1 or 7. */
  days: number;
  /** The function that makes a partition of a day, where its partitions have parts of their own. */
  maker?: 'log_day';
}

export interface Partition {
  name: string;
  /** Milliseconds of its first moment. */
  start: number;
}

/** The table in weeks that begin on Mondays. */
export function weekly(table: string): Partitioned {
  return { table, days: DAYS_OF_WEEK };
}

/** Partitions that the table has, the oldest first. */
export async function partitionsOf(sql: Knex, { table }: Partitioned): Promise<Partition[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    'select relid::text as name from pg_partition_tree(?::regclass) where level = 1 order by 1',
    [table],
  );
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = NAME.exec(name) ?? [];
    return year ? [{ name, start: Date.UTC(Number(year), Number(month) - 1, Number(day)) }] : [];
  });
}

/** First moment of the week that a time in milliseconds lies in. */
export function weekOf(at: number): number {
  return Math.floor((at - FIRST_MONDAY_MS) / WEEK_MS) * WEEK_MS + FIRST_MONDAY_MS;
}

/** First moment of the day that a time in milliseconds lies in. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}

/** Makes the partitions that are not there, from one first moment to another, both included. */
export async function makePartitions(sql: Knex, of: Partitioned, from: number, until: number): Promise<void> {
  const there = new Set((await partitionsOf(sql, of)).map(({ start }) => start));
  for (let start = from; start <= until; start += of.days * DAY_MS) {
    if (there.has(start)) continue;
    if (of.maker) await sql.raw(`select ${of.maker}(?::date)`, [dateOf(start)]);
    else await sql.raw('select range_partition(?, ?::date, ?)', [of.table, dateOf(start), of.days]);
  }
}

/**
 * Drops the partitions that end at or before a time in milliseconds, each in its own transaction, in which `also` deletes
 * what belongs to it. Returns their names.
 */
export async function dropPartitions(
  sql: Knex,
  of: Partitioned,
  keepFrom: number,
  also?: (trx: Knex.Transaction, date: string) => Promise<unknown>,
): Promise<string[]> {
  const old = (await partitionsOf(sql, of)).filter(({ start }) => start + of.days * DAY_MS <= keepFrom);
  for (const { name, start } of old) {
    await sql.transaction(async (trx) => {
      // Readers and writers of other partitions wait behind this lock: a later attempt is better than a queue.
      await trx.raw(`set local lock_timeout = '2s'`);
      await trx.raw('drop table if exists ??', [name]);
      await also?.(trx, dateOf(start));
    });
  }
  return old.map(({ name }) => name);
}

function dateOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
