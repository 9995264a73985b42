// What exclusions would have silenced, by the events that nodes told of.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { startOf } from '../../contract/resources/rule-hits.ts';
import { MAX_LOOKED_AT, type wafExclusions } from '../../contract/resources/waf-exclusions.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import { readSiteWaf } from '../../models/waf/site-waf.ts';
import { newestMatches } from '../../models/waf/waf-event.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { assertExcludable, givenExclusion } from './given-waf.ts';
import { countSilenced } from './silenced.ts';

/** Throws SITE_NOT_FOUND. */
export async function listExclusionHits(
  { pools }: Pick<Runtime, 'pools'>,
  { id }: Input<typeof wafExclusions.hits>,
): Promise<Output<typeof wafExclusions.hits>> {
  const saved = (await readSiteWaf(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  const { exclusions } = saved.settings;
  const events = exclusions.length === 0 ? [] : await newestMatches(pools.api, id, startOf('7d'), MAX_LOOKED_AT);
  const items = exclusions.map((exclusion) => {
    const counted = countSilenced([exclusion], events);
    return { exclusion, events: counted?.events ?? null, matched: counted?.matched ?? null };
  });
  return { approximate: true, looked: events.length, items };
}

/** Throws SITE_NOT_FOUND, WAF_RULE_NOT_EXCLUDABLE, and BAD_REQUEST naming the field. */
export async function previewExclusions(
  { pools }: Pick<Runtime, 'pools'>,
  { id, exclusions: given }: Input<typeof wafExclusions.preview>,
): Promise<Output<typeof wafExclusions.preview>> {
  const exclusions = given.map((one, index) => givenExclusion(one, `/exclusions/${index}`));
  assertExcludable({ excludedRuleIds: [], excludedFamilies: [], exclusions });
  if (!(await clusterOfSite(pools.api, id))) fail('SITE_NOT_FOUND');
  const events = await newestMatches(pools.api, id, startOf('7d'), MAX_LOOKED_AT);
  const counted = countSilenced(exclusions, events) ?? { events: null, matched: null, attacks: null, remaining: [] };
  return { approximate: true, looked: events.length, exclusions, ...counted };
}
