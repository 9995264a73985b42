// Weeks of the hours in which rules matched.
import type { Knex } from 'knex';
import { DAY_MS, dropPartitions, makePartitions, WEEK_MS, weekly, weekOf } from '../db/partitions.ts';
import { RULE_DAYS } from './rule-minute.ts';

const HOURS = weekly('rule_hour');
const KEPT_MS = (RULE_DAYS + 1) * DAY_MS;

/** Makes the weeks of all that is kept, and the next. Answers the first moment that has a place. */
export async function makeRuleWeeks(sql: Knex, now: Date): Promise<Date> {
  const from = weekOf(now.getTime() - KEPT_MS);
  await makePartitions(sql, HOURS, from, weekOf(now.getTime() + WEEK_MS));
  return new Date(from);
}

/** Drops the weeks of which nothing is shown any more; answers their names. */
export async function dropRuleWeeks(sql: Knex, now: Date): Promise<string[]> {
  return dropPartitions(sql, HOURS, now.getTime() - KEPT_MS);
}
