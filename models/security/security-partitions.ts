// Days of security events: partitions are made ahead and dropped when they are as old as the settings say.
import type { Knex } from 'knex';
import { DAY_MS, dayOf, dropPartitions, makePartitions } from '../db/partitions.ts';
import { readProtectionSettings } from './protection-setting.ts';

const AHEAD_DAYS = 7;

export const SECURITY_EVENTS = { table: 'security_event', days: 1 };

export async function makeSecurityPartitions(sql: Knex, now: Date): Promise<void> {
  const today = dayOf(now.getTime());
  await makePartitions(sql, SECURITY_EVENTS, today, today + AHEAD_DAYS * DAY_MS);
}

/** Drops the days of which nothing is young enough any more; returns the names of their partitions. */
export async function dropOldSecurityPartitions(sql: Knex, now: Date): Promise<string[]> {
  const { eventRetentionDays } = await readProtectionSettings(sql);
  const keepFrom = now.getTime() - eventRetentionDays * DAY_MS;
  return dropPartitions(sql, SECURITY_EVENTS, keepFrom, (trx, date) =>
    trx('security_event_day').where('day', '=', date).delete(),
  );
}
