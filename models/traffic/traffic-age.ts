// How long statistics are kept: partitions of windows are made ahead and dropped, older sums deleted.
import type { Knex } from 'knex';
import { DAY_MS, dayOf, dropPartitions, makePartitions } from '../db/partitions.ts';
import { KEPT_DAYS } from './traffic-columns.ts';

const WINDOWS = { table: 'traffic_window', days: 1 };
const AHEAD_DAYS = 2;
const DELETED_AT_ONCE = 5_000;
const MOST_TURNS = 1_000;

/** Makes the days of windows from the oldest that counts may come for to the next ones. */
export async function makeTrafficDays(sql: Knex, now: Date): Promise<void> {
  const today = dayOf(now.getTime());
  await makePartitions(sql, WINDOWS, today - KEPT_DAYS.traffic_window * DAY_MS, today + AHEAD_DAYS * DAY_MS);
}

/** Deletes sums that are too old. */
export async function deleteOldTraffic(sql: Knex, now: Date): Promise<void> {
  const { traffic_window, ...others } = KEPT_DAYS;
  await dropPartitions(sql, WINDOWS, dayOf(now.getTime()) - traffic_window * DAY_MS);
  for (const [table, days] of Object.entries(others)) {
    const before = new Date(now.getTime() - days * DAY_MS);
    const statement = `delete from ${table} where ctid = any(array(
      select ctid from ${table} where starts_at < ? limit ${DELETED_AT_ONCE}))`;
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const { rowCount } = await sql.raw<{ rowCount: number }>(statement, [before]);
      if (rowCount < DELETED_AT_ONCE) break;
    }
  }
}
