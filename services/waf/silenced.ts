// What exclusions leave of what was told of requests: the same reading of exclusions as nodes have. Pure.
import type { WafExclusion } from '../../contract/resources/site-waf.ts';
import type { WafPart } from '../../contract/waf-rule-set.ts';
import RULES from '../../contract/waf-rules.json' with { type: 'json' };
import { MAX_WAF_RULES } from '../../models/security/security-report.ts';
import type { NewestMatches } from '../../models/waf/waf-event.ts';

export interface Silenced {
  /** Attacks that were none without what is excluded, and other events of which nothing is left. */
  events: number;
  /** Events in which anything is left alone. */
  matched: number;
  /** Events of these that are attacks all the same. */
  attacks: number;
  /** What matches in those attacks still, in the most events first. */
  remaining: Remaining[];
}

export interface Remaining {
  ruleId: number;
  part: WafPart;
  name: string;
  events: number;
}

const MAX_REMAINING = 10;

/** What one match of a rule adds to a score. */
const WEIGHTS: Readonly<Record<string, number>> = { critical: 5, error: 4, warning: 3, notice: 2 };
const WEIGHT_OF = new Map(RULES.map(({ id, severity }) => [id, WEIGHTS[severity] ?? 0]));

interface Match {
  rule: number;
  part: string;
  name: string;
  points: number;
}

/** Whether an exclusion is for a match, on its path. */
type Cover = (match: Match) => boolean;

/** Of how many events the exclusions together leave too little. Null where a tag of one says nothing of the rules. */
export function countSilenced(exclusions: readonly WafExclusion[], events: readonly NewestMatches[]): Silenced | null {
  const covers = exclusions.map(coverOf);
  if (covers.includes(null)) return null;
  let [silenced, matched, attacks] = [0, 0, 0];
  const remaining = new Map<string, Remaining>();
  for (const event of events) {
    const there = covers.flatMap((cover, at) => (isThere(exclusions[at]!, event.path) ? cover! : []));
    const found = leftOf(event, there);
    if (found === null) continue;
    matched++;
    if (found.silent) silenced++;
    if (!found.attack) continue;
    attacks++;
    for (const { rule, part, name } of found.left) {
      const key = `${rule} ${part} ${name}`;
      const known = remaining.get(key) ?? { ruleId: rule, part: part as WafPart, name, events: 0 };
      remaining.set(key, { ...known, events: known.events + 1 });
    }
  }
  const most = [...remaining.values()].sort((a, b) => b.events - a.events || a.ruleId - b.ruleId);
  return { events: silenced, matched, attacks, remaining: most.slice(0, MAX_REMAINING) };
}

/** What matches of an event are left; null where none is excluded. */
function leftOf(
  event: NewestMatches,
  covers: readonly Cover[],
): { silent: boolean; attack: boolean; left: readonly Match[] } | null {
  const matches = matchesOf(event);
  const left = matches.filter((match) => !covers.some((cover) => cover(match)));
  if (left.length === matches.length) return null;
  const counted = (event.matchesSeen ?? 0) > 0;
  const points = (some: readonly Match[]) => some.reduce((sum, match) => sum + match.points, 0);
  const score = event.score - points(matches) + points(left);
  // Matches that the event did not keep can be anywhere.
  const whole = counted ? event.matchesSeen === matches.length : event.rules.length < MAX_WAF_RULES;
  const gone = left.length === 0 && whole && (counted || score <= 0 || isWhole(matches, covers));
  const attack = !gone && score >= event.threshold;
  return { silent: gone || (event.score >= event.threshold && !attack), attack, left };
}

/** Whether rules do not run at all, wherever they matched. */
function isWhole(matches: readonly Match[], covers: readonly Cover[]): boolean {
  return matches.every((match) => covers.some((cover) => cover({ ...match, part: 'all', name: '' })));
}

function matchesOf({ rules, matches, matchesSeen }: NewestMatches): Match[] {
  if (matchesSeen) return matches.map((match) => ({ points: 0, ...match }));
  return rules.flatMap((rule) => {
    const told = matches.filter((match) => match.rule === rule);
    // Several places share what one weighs: no exclusion is said to silence more than it does.
    const points = (WEIGHT_OF.get(rule) ?? 0) / Math.max(told.length, 1);
    const places = told.length > 0 ? told : [{ part: 'all', name: '' }];
    return places.map(({ part, name }) => ({ rule, part, name, points }));
  });
}

function coverOf(exclusion: WafExclusion): Cover | null {
  const rules = rulesOf(exclusion);
  if (rules === null) return null;
  const isNamed = nameTest(exclusion.name);
  return ({ rule, part, name }) =>
    rules.has(rule) && (exclusion.part === 'all' || (part === exclusion.part && isNamed(name.toLowerCase())));
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
