// How two people's edits of one list of rules come together: rule by rule, and their order. Pure.
import { same } from '../../shared/forms/paths.ts';
import { changedParts, type DraftRule, draftOf, PARTS, type Rule } from './rule.ts';

/** One rule that both changed; null: deleted. */
export interface RuleConflict {
  id: string;
  name: string;
  mine: DraftRule | null;
  theirs: DraftRule | null;
}

export interface Merged {
  rules: DraftRule[];
  /** Rules of which `rules` has mine until a person chooses. */
  conflicts: RuleConflict[];
}

/** My edits of `base` on top of what somebody else made of it. */
export function mergeRules(base: readonly Rule[], mine: readonly DraftRule[], theirs: readonly Rule[]): Merged {
  const was = new Map(base.map((rule) => [rule.id, draftOf(rule)]));
  const now = new Map(theirs.map((rule) => [rule.id, draftOf(rule)]));
  const my = new Map(mine.flatMap((rule) => (rule.id === undefined ? [] : [[rule.id, rule] as const])));
  const conflicts: RuleConflict[] = [];
  const kept = new Map<string, DraftRule>();
  for (const id of new Set([...was.keys(), ...now.keys()])) {
    const outcome = mergeRule(was.get(id) ?? null, my.get(id) ?? null, now.get(id) ?? null);
    const { rule, conflict } = outcome;
    if (conflict) {
      const [mineOne, theirsOne] = [my.get(id) ?? null, now.get(id) ?? null];
      conflicts.push({ id, name: (mineOne ?? theirsOne ?? was.get(id))!.name, mine: mineOne, theirs: theirsOne });
    }
    if (rule) kept.set(id, rule);
  }
  return { rules: ordered(base, mine, theirs, kept), conflicts };
}

function mergeRule(
  was: DraftRule | null,
  mine: DraftRule | null,
  theirs: DraftRule | null,
): { rule: DraftRule | null; conflict: boolean } {
  if (was === null) return { rule: theirs, conflict: false };
  const [byMe, byThem] = [differs(was, mine), differs(was, theirs)];
  if (!byMe) return { rule: theirs, conflict: false };
  if (!byThem) return { rule: mine, conflict: false };
  if (!differs(mine, theirs)) return { rule: theirs, conflict: false };
  if (mine === null || theirs === null) return { rule: mine, conflict: true };
  return mergeParts(was, mine, theirs);
}

/** A name that one changed and a switch that the other turned go together. */
function mergeParts(was: DraftRule, mine: DraftRule, theirs: DraftRule): { rule: DraftRule; conflict: boolean } {
  const byMe = changedParts(was, mine);
  const both = byMe.filter((part) => !same(was[part], theirs[part]) && !same(mine[part], theirs[part]));
  // An action has to fit its phase: one of each is neither person's rule.
  const torn =
    new Set([...byMe, ...changedParts(was, theirs)]).isSupersetOf(new Set(['phase', 'action'])) &&
    !same(mine.action, theirs.action);
  if (both.length > 0 || torn) return { rule: mine, conflict: true };
  const values = Object.fromEntries(PARTS.map((part) => [part, byMe.includes(part) ? mine[part] : theirs[part]]));
  return { rule: { ...theirs, ...values } as DraftRule, conflict: false };
}

function differs(a: DraftRule | null, b: DraftRule | null): boolean {
  return a === null || b === null ? a !== b : changedParts(a, b).length > 0;
}

/** My order where I changed it, else theirs; what the other list has besides stands behind what it stood behind there. */
function ordered(
  base: readonly Rule[],
  mine: readonly DraftRule[],
  theirs: readonly Rule[],
  kept: ReadonlyMap<string, DraftRule>,
): DraftRule[] {
  const common = (ids: readonly (string | undefined)[]) =>
    ids.filter((id) => base.some((rule) => rule.id === id) && mine.some((rule) => rule.id === id));
  const byMe = !same(common(mine.map(({ id }) => id)), common(base.map(({ id }) => id)));
  const my = mine.flatMap((rule) => (rule.id === undefined ? [rule] : kept.has(rule.id) ? [kept.get(rule.id)!] : []));
  const other = theirs.flatMap(({ id }) => (kept.has(id) ? [kept.get(id)!] : []));
  const result = byMe ? interleaved(my, other) : interleaved(other, my);
  return interleaved(result, [...kept.values()]);
}

/** The first list, with what only the second has put behind what it stands behind there. */
function interleaved(first: readonly DraftRule[], second: readonly DraftRule[]): DraftRule[] {
  const result = [...first];
  const has = (key: string) => result.findIndex((rule) => rule.key === key);
  second.forEach((rule, index) => {
    if (has(rule.key) >= 0) return;
    const before = second
      .slice(0, index)
      .reverse()
      .find(({ key }) => has(key) >= 0);
    result.splice(before ? has(before.key) + 1 : 0, 0, rule);
  });
  return result;
}

/** The merged list with theirs in place of mine for these rules. */
export function withTheirs(rules: readonly DraftRule[], conflicts: readonly RuleConflict[]): DraftRule[] {
  const chosen = new Map(conflicts.map((conflict) => [conflict.id, conflict.theirs]));
  const kept = rules.flatMap((rule) => {
    if (rule.id === undefined || !chosen.has(rule.id)) return [rule];
    const theirs = chosen.get(rule.id);
    return theirs ? [theirs] : [];
  });
  const missing = conflicts.flatMap(({ id, theirs }) =>
    theirs && !kept.some((rule) => rule.id === id) ? [theirs] : [],
  );
  return [...kept, ...missing];
}
