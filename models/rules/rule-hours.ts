// Weeks of the hours in which rules matched.
import type { Knex } from 'knex';
import { dropWeeks, makeWeeks, WEEK_MS, weekOf } from '../db/week-partitions.ts';
import { RULE_DAYS } from './rule-minute.ts';

const TABLE = 'rule_hour';
const KEPT_MS = (RULE_DAYS + 1) * 86_400_000;

/** Makes the weeks of all that is kept, and the next. Answers the first moment that has a place. */
export async function makeRuleWeeks(sql: Knex, now: Date): Promise<Date> {
  const from = weekOf(now.getTime() - KEPT_MS);
  await makeWeeks(sql, TABLE, from, weekOf(now.getTime() + WEEK_MS));
  return new Date(from);
}

/** Drops the weeks of which nothing is shown any more; answers their names. */
export async function dropRuleWeeks(sql: Knex, now: Date): Promise<string[]> {
  return dropWeeks(sql, TABLE, now.getTime() - KEPT_MS);
}
