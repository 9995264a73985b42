// Weeks of usage: partitions are made ahead and dropped when nothing of them is young enough any more.
import type { Knex } from 'knex';
import { DAY_MS, dropPartitions, makePartitions, partitionsOf, WEEK_MS, weekly, weekOf } from '../db/partitions.ts';
import { readUsageSettings } from './usage-setting.ts';

const AHEAD_WEEKS = 2;
/** Most weeks made at once, after a console that was off for years. */
const MOST_WEEKS = 500;
const DROPPED_AT_ONCE = 5_000;

/** Dependent tables last: while a week is made or dropped, no minute is there whose window or record has no place. */
const TABLES = ['usage_record', 'usage_window', 'usage_minute'].map(weekly);
const MINUTES = weekly('usage_minute');

/**
 * Makes every week from the oldest that is there, or the last one, to the second after this. Answers the first moment
 * that has a place, in milliseconds.
 */
export async function makeUsagePartitions(sql: Knex, now: Date): Promise<number> {
  const until = weekOf(now.getTime()) + AHEAD_WEEKS * WEEK_MS;
  const oldest = (await partitionsOf(sql, MINUTES))[0]?.start;
  const from = Math.max(Math.min(oldest ?? until, weekOf(now.getTime()) - WEEK_MS), until - MOST_WEEKS * WEEK_MS);
  for (const table of TABLES) await makePartitions(sql, table, from, until);
  return from;
}

/** First moment that has a place, in milliseconds; null while there is none for now. */
export async function usageFloor(sql: Knex, now: Date): Promise<number | null> {
  const weeks = await partitionsOf(sql, MINUTES);
  const ahead = weeks.some(({ start }) => start > now.getTime());
  return ahead ? weeks[0]!.start : null;
}

/** Drops what is older than the settings say, whole weeks at a time; answers the names of the weeks. */
export async function dropOldUsage(sql: Knex, now: Date): Promise<string[]> {
  const { retentionDays } = await readUsageSettings(sql);
  const keepFrom = now.getTime() - retentionDays * DAY_MS;
  const dropped: string[] = [];
  // Minutes first, for the same reason.
  for (const table of TABLES.toReversed()) dropped.push(...(await dropPartitions(sql, table, keepFrom)));
  await endFarGaps(sql, now);
  await deleteOld(sql, new Date(keepFrom));
  return dropped;
}

/** Gaps that earlier versions stored with an end far ahead: they would never be old enough to be deleted. */
async function endFarGaps(sql: Knex, now: Date): Promise<void> {
  await sql('usage_gap')
    .where('ends_at', '>', now)
    .update({ starts_at: sql.raw('least(starts_at, ?::timestamptz)', [now]), ends_at: now });
}

const AGED = {
  usage_hour: 'starts_at',
  usage_day: 'starts_at',
  usage_total: 'starts_at',
  usage_gap: 'ends_at',
  deleted_site: 'deleted_at',
};

async function deleteOld(sql: Knex, keepFrom: Date): Promise<void> {
  for (const [table, column] of Object.entries(AGED)) {
    const statement = `delete from ${table} where ctid = any(array(
      select ctid from ${table} where ${column} < ? limit ${DROPPED_AT_ONCE}))`;
    for (let turn = 0; turn < 1000; turn++) {
      const { rowCount } = await sql.raw<{ rowCount: number }>(statement, [keepFrom]);
      if (rowCount < DROPPED_AT_ONCE) break;
    }
  }
}
