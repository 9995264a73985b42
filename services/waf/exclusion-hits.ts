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
  const items = exclusions.map((exclusion) => ({ exclusion, ...countSilenced(exclusion, events) }));
  return { approximate: true, looked: events.length, items };
}

/** Throws SITE_NOT_FOUND, WAF_RULE_NOT_EXCLUDABLE, and BAD_REQUEST naming the field. */
export async function previewExclusion(
  { pools }: Pick<Runtime, 'pools'>,
  { id, exclusion: given }: Input<typeof wafExclusions.preview>,
): Promise<Output<typeof wafExclusions.preview>> {
  const exclusion = givenExclusion(given, '/exclusion');
  assertExcludable({ excludedRuleIds: [], excludedFamilies: [], exclusions: [exclusion] });
  if (!(await clusterOfSite(pools.api, id))) fail('SITE_NOT_FOUND');
  const events = await newestMatches(pools.api, id, startOf('7d'), MAX_LOOKED_AT);
  return { approximate: true, looked: events.length, exclusion, ...countSilenced(exclusion, events) };
}
