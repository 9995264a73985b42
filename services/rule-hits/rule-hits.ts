import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  MAX_RULE_HITS,
  RULE_EVENTS,
  type RuleRange,
  type ruleHits,
  startOf,
} from '../../contract/resources/rule-hits.ts';
import { loggedRules, nodesWithoutRuleCounts, type RuleHit, ruleHitsSince } from '../../models/rules/rule-hits.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const DEFAULT_LIMIT = 10;

/** Throws SITE_NOT_FOUND. */
export async function listLoggedRules(
  { pools }: Pick<Runtime, 'pools'>,
  { id, range, limit = DEFAULT_LIMIT }: Input<typeof ruleHits.logged>,
): Promise<Output<typeof ruleHits.logged>> {
  const sql = pools.api;
  const clusterId = (await clusterOfSite(sql, id)) ?? fail('SITE_NOT_FOUND');
  const [items, unsupportedNodes] = await Promise.all([
    loggedRules(sql, id, startOf(range), limit),
    nodesWithoutRuleCounts(sql, clusterId),
  ]);
  return { approximate: true, items, unsupportedNodes };
}

/** Throws SITE_NOT_FOUND. */
export async function siteRuleHits(
  { pools }: Pick<Runtime, 'pools'>,
  { id, range }: Input<typeof ruleHits.site>,
): Promise<Output<typeof ruleHits.site>> {
  const clusterId = (await clusterOfSite(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  return hits(pools.api, id, clusterId, range);
}

export async function platformRuleHits(
  { pools }: Pick<Runtime, 'pools'>,
  { range }: Input<typeof ruleHits.platform>,
): Promise<Output<typeof ruleHits.platform>> {
  return hits(pools.api, '', null, range);
}

async function hits(
  sql: Runtime['pools']['api'],
  siteId: string,
  clusterId: string | null,
  range: RuleRange | undefined,
): Promise<Output<typeof ruleHits.site>> {
  const [found, unsupportedNodes] = await Promise.all([
    ruleHitsSince(sql, siteId, startOf(range), MAX_RULE_HITS),
    nodesWithoutRuleCounts(sql, clusterId),
  ]);
  return { approximate: true, items: found.map(presentHit), unsupportedNodes };
}

function presentHit({ ruleId, event, requests }: RuleHit) {
  return { ruleId, event: RULE_EVENTS[event - 1]!, requests };
}
