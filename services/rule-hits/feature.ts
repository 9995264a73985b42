import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS } from '../../mixins/sweep.ts';
import { dropRuleWeeks, makeRuleWeeks } from '../../models/rules/rule-hours.ts';
import { moveAllRuleMinutes } from '../../models/rules/rule-minute.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Beyond the shortest range that is asked for. */
const KEPT_MS = 2 * HOUR_MS;

export const feature = {
  jobs: [{ name: 'rule-hours', everyMs: 10 * MINUTE_MS, run: keepRuleHours }],
} satisfies ServiceFeature;

/** Moves old minutes to their hours, and drops hours that are older than what is shown. */
async function keepRuleHours({ pools, log }: Runtime, signal?: AbortSignal): Promise<void> {
  const sql = pools.api;
  const now = new Date();
  const floor = await makeRuleWeeks(sql, now);
  const before = new Date(Math.floor((now.getTime() - KEPT_MS) / HOUR_MS) * HOUR_MS);
  await moveAllRuleMinutes(sql, before, floor, signal);
  const dropped = await dropRuleWeeks(sql, now);
  if (dropped.length > 0) log.info({ dropped }, 'old rule hits deleted');
}
