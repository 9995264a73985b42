// What an exclusion leaves of what was told of requests: the same reading of exclusions as nodes have. Pure.
import type { WafExclusion } from '../../contract/resources/site-waf.ts';
import RULES from '../../contract/waf-rules.json' with { type: 'json' };
import { MAX_WAF_RULES } from '../../models/security/security-report.ts';
import type { NewestMatches } from '../../models/waf/waf-event.ts';

export interface Silenced {
  /** Attacks that were none without it, and other events of which nothing is left. */
  events: number | null;
  /** Events in which it leaves anything alone. */
  matched: number | null;
}

/** What one match of a rule adds to a score. */
const WEIGHTS: Readonly<Record<string, number>> = { critical: 5, error: 4, warning: 3, notice: 2 };
const WEIGHT_OF = new Map(RULES.map(({ id, severity }) => [id, WEIGHTS[severity] ?? 0]));

/**
 * Of how many events an exclusion leaves too little. Of a rule that matched more than once one place is told: it is taken off
 * once, so that no exclusion is said to silence more than it does. Null where its tag says nothing of the rules.
 */
export function countSilenced(exclusion: WafExclusion, events: readonly NewestMatches[]): Silenced {
  const rules = rulesOf(exclusion);
  if (rules === null) return { events: null, matched: null };
  const isNamed = nameTest(exclusion.name);
  let [silenced, matched] = [0, 0];
  for (const event of events) {
    if (!isThere(exclusion, event.path)) continue;
    const leavesAlone = (rule: number) =>
      rules.has(rule) &&
      (exclusion.part === 'all' ||
        event.matches.some(
          (match) => match.rule === rule && match.part === exclusion.part && isNamed(match.name.toLowerCase()),
        ));
    const without = event.rules.filter(leavesAlone);
    if (without.length === 0) continue;
    matched++;
    if (isSilent(event, without, exclusion.part === 'all')) silenced++;
  }
  return { events: silenced, matched };
}

/** Whether an event without some of its rules, or the place told of them, is no attack any more, or nothing where it was none. */
function isSilent({ rules, score, threshold }: NewestMatches, without: readonly number[], wholly: boolean): boolean {
  const left = score - without.reduce((sum, rule) => sum + (WEIGHT_OF.get(rule) ?? 0), 0);
  if (score >= threshold && left < threshold) return true;
  // Of more rules than these nothing was told.
  return without.length === rules.length && rules.length < MAX_WAF_RULES && (wholly || left <= 0);
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
