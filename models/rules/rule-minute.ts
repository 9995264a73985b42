// What became of requests under rules, as nodes counted it: by minute for two hours, then by hour.
import type { Knex } from 'knex';
import type { PoolClient } from 'pg';
import { copyIn, minuteTexts } from '../db/copy-in.ts';
import type { IsOfCluster } from '../sites/sites-of-clusters.ts';
import { HOUR_SECONDS, startOf } from '../usage/usage-totals.ts';

const DAY_MS = 86_400_000;
/** Of what is older nothing is shown. */
export const RULE_DAYS = 30;
const MOVED_AT_ONCE = 20_000;

export interface SummedRule {
  clusterId: string;
  /** '' = of the node, which counts the platform's rules. */
  siteId: string;
  /** Milliseconds of the start of the minute. */
  minute: number;
  ruleId: string;
  platform: boolean;
  /** As RuleEvent of the messages has it. */
  event: number;
  requests: number;
}

const COLUMNS = ['minute', 'site_id', 'platform', 'rule_id', 'event', 'requests'];

/** Appends counts; those of sites that are not of the cluster, and were not before they were deleted, are left out. */
export async function appendRuleMinutes(
  client: PoolClient,
  sums: readonly SummedRule[],
  isOfCluster: IsOfCluster,
  now: Date,
): Promise<void> {
  const shownFrom = now.getTime() - RULE_DAYS * DAY_MS;
  const minuteOf = minuteTexts();
  const rows = sums
    .filter((sum) => sum.minute > shownFrom && isOfCluster(sum))
    .map(({ minute, siteId, platform, ruleId, event, requests }) => [
      minuteOf(minute),
      siteId,
      platform,
      ruleId,
      event,
      requests,
    ]);
  if (rows.length > 0) await copyIn(client, 'rule_minute', COLUMNS, rows);
}

/**
 * Adds minutes before `before` to their hours, at most 20,000 rows; answers how many it took. What is before `floor`, where
 * hours have a place, is forgotten. One statement: whatever ends it, everything is counted once. May run in several
 * processes at once.
 */
export async function moveRuleMinutes(sql: Knex, before: Date, floor: Date): Promise<number> {
  const { rows } = await sql.raw<{ rows: { taken: number }[] }>(
    `with taken as (
       delete from rule_minute where ctid = any(array(
         select ctid from rule_minute where minute < :before::timestamptz order by minute
          limit ${MOVED_AT_ONCE} for update skip locked))
       returning minute, site_id, platform, rule_id, event, requests
     ), moved as (
       insert into rule_hour as h (starts_at, site_id, platform, rule_id, event, requests)
         select ${startOf(HOUR_SECONDS, 'minute')}, site_id, platform, rule_id, event, sum(requests) from taken
          where minute >= :floor::timestamptz group by 1, 2, 3, 4, 5 order by 2, 1, 3, 4, 5
         on conflict (site_id, starts_at, platform, rule_id, event) do update set requests = h.requests + excluded.requests
     )
     select count(*)::int as taken from taken`,
    { before, floor } as never,
  );
  return rows[0]!.taken;
}

/** {@link moveRuleMinutes} until nothing is left, or `signal` ends it. */
export async function moveAllRuleMinutes(sql: Knex, before: Date, floor: Date, signal?: AbortSignal): Promise<void> {
  while ((await moveRuleMinutes(sql, before, floor)) === MOVED_AT_ONCE) if (signal?.aborted) return;
}
