// An exclusion as people see and type it, and as an event suggests it. Pure.
import type { WafExclusion } from '@contract/resources/site-waf.ts';

type Place = Pick<WafExclusion, 'path' | 'part' | 'name'> & { ruleId: number };

/** What was typed for a rule or a tag: digits are a rule. */
export function readTarget(typed: string): Pick<WafExclusion, 'ruleId' | 'tag'> {
  const text = typed.trim();
  if (/^\d{1,9}$/.test(text)) return { ruleId: Number(text), tag: null };
  return { ruleId: null, tag: text === '' ? null : text };
}

export function targetText({ ruleId, tag }: Pick<WafExclusion, 'ruleId' | 'tag'>): string {
  return ruleId === null ? (tag ?? '') : String(ruleId);
}

/** One that says nothing yet, as the contract fills it in. */
export function newExclusion(): WafExclusion {
  return { ruleId: null, tag: null, path: '', pathPrefix: false, part: 'all', name: '' };
}

/** The narrowest one that silences what matched there: indices of arrays are any, what has no name is the request. */
export function exclusionAt({ ruleId, path, part, name }: Place): WafExclusion {
  const pattern = name
    .split('.')
    .map((segment, at) => (at > 0 && /^\d+$/.test(segment) ? '*' : segment))
    .join('.');
  return { ...newExclusion(), ruleId, path, ...(pattern === '' ? {} : ofPart(part, pattern)) };
}

/** Where rules matched in an event, and then those rules of which no place is known. */
export function placesOf<M extends { ruleId: number; part: WafExclusion['part']; name: string }>({
  rules,
  matches,
}: {
  rules: readonly number[];
  matches: readonly M[];
}): (M | { ruleId: number; part: 'all'; name: ''; value: null })[] {
  const placed = new Set(matches.map(({ ruleId }) => ruleId));
  const others = rules.filter((ruleId) => !placed.has(ruleId));
  return [...matches, ...others.map((ruleId) => ({ ruleId, part: 'all' as const, name: '' as const, value: null }))];
}

/** One exclusion for each place of an event, each once, without those that there are. */
export function exclusionsOf(
  event: Parameters<typeof placesOf>[0] & { path: string },
  present: readonly WafExclusion[],
): WafExclusion[] {
  const all = placesOf(event).map(({ ruleId, part, name }) => exclusionAt({ ruleId, part, name, path: event.path }));
  return all.reduce(withExclusion, [...present]).slice(present.length);
}

/** The fields of a part that was chosen: what belongs to the one before goes. */
export function ofPart(part: WafExclusion['part'], name: string): Pick<WafExclusion, 'part' | 'name'> {
  return { part, name: part === 'all' ? '' : name };
}

/** Whether it says all that it has to, so that it can be tried. */
export function isWhole({ ruleId, tag, path, part, name }: WafExclusion): boolean {
  return (ruleId !== null || tag !== null) && (path === '' || path.startsWith('/')) && (part === 'all' || name !== '');
}

export function isSame(one: WafExclusion, other: WafExclusion): boolean {
  return (Object.keys(newExclusion()) as (keyof WafExclusion)[]).every((key) => one[key] === other[key]);
}

/** With it at the end; the same where it is there already. */
export function withExclusion(all: readonly WafExclusion[], one: WafExclusion): WafExclusion[] {
  return all.some((other) => isSame(one, other)) ? [...all] : [...all, one];
}

export function withoutExclusion(all: readonly WafExclusion[], one: WafExclusion): WafExclusion[] {
  return all.filter((other) => !isSame(one, other));
}

/** Ids that were typed, one a line; what is no number stays text, and is refused at its field. */
export function readIds(lines: readonly string[]): (number | string)[] {
  return lines.map((line) => (/^\d{1,9}$/.test(line) ? Number(line) : line));
}
