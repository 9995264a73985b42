// What exclusions would have silenced, by the events that nodes told of: the same reading of them as nodes have.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { startOf } from '../../contract/resources/rule-hits.ts';
import type { WafExclusion } from '../../contract/resources/site-waf.ts';
import { MAX_LOOKED_AT, type wafExclusions } from '../../contract/resources/waf-exclusions.ts';
import RULES from '../../contract/waf-rules.json' with { type: 'json' };
import { clusterOfSite } from '../../models/site.ts';
import { readSiteWaf } from '../../models/site-waf.ts';
import { newestMatches } from '../../models/waf-event.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { assertExcludable, givenExclusion } from './given-waf.ts';

type Matches = Awaited<ReturnType<typeof newestMatches>>[number];

/** Throws SITE_NOT_FOUND. */
export async function listExclusionHits(
  { pools }: Pick<Runtime, 'pools'>,
  { id }: Input<typeof wafExclusions.hits>,
): Promise<Output<typeof wafExclusions.hits>> {
  const saved = (await readSiteWaf(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  const { exclusions } = saved.settings;
  const events = exclusions.length === 0 ? [] : await newestMatches(pools.api, id, startOf('7d'), MAX_LOOKED_AT);
  const items = exclusions.map((exclusion) => ({ exclusion, events: countSilenced(exclusion, events) }));
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
  return { approximate: true, looked: events.length, exclusion, events: countSilenced(exclusion, events) };
}

/** How many events have a match that an exclusion silences; null where its tag says nothing of the rules. */
export function countSilenced(exclusion: WafExclusion, events: readonly Matches[]): number | null {
  const rules = rulesOf(exclusion);
  if (rules === null) return null;
  const isNamed = nameTest(exclusion.name);
  return events.filter(
    (event) =>
      isThere(exclusion, event.path) &&
      (exclusion.part === 'all'
        ? event.rules.some((rule) => rules.has(rule))
        : event.matches.some(
            ({ rule, part, name }) => rules.has(rule) && part === exclusion.part && isNamed(name.toLowerCase()),
          )),
  ).length;
}

function rulesOf({ ruleId, tag }: WafExclusion): ReadonlySet<number> | null {
  if (ruleId !== null) return new Set([ruleId]);
  const tagged = RULES.filter(({ tags }) => tags.split(' ').includes(tag!)).map(({ id }) => id);
  return tagged.length === 0 ? null : new Set(tagged);
}

function isThere({ path, pathPrefix }: WafExclusion, at: string): boolean {
  return path === '' || at === path || (pathPrefix && at.startsWith(path));
}

/** "*" between dots stands for the index of an array. */
function nameTest(name: string): (other: string) => boolean {
  const wanted = name.toLowerCase().split('.');
  return (other) => {
    const found = other.split('.');
    return (
      found.length === wanted.length &&
      wanted.every((part, at) => part === found[at] || (at > 0 && part === '*' && /^\d+$/.test(found[at]!)))
    );
  };
}
