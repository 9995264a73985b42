// What a save changes in a list of rules. Pure.

import { PHASES } from '../../../../contract/expression/phases.ts';
import { changedParts, type DraftRule, ofPhase, type Rule, type RulePart } from './rule.ts';

export type RuleChange =
  | { what: 'added'; rule: DraftRule }
  | { what: 'removed'; rule: Rule }
  | { what: 'changed'; before: Rule; rule: DraftRule; parts: RulePart[] }
  /** Only its place among the rules of its phase; from 1. */
  | { what: 'moved'; rule: DraftRule; from: number; to: number };

/**
 * Changes in the order of the list; what was removed stands last. `picked`: keys of rules that a person moved; where several
 * may count as moved it is they.
 */
export function rulesDiff(
  before: readonly Rule[],
  after: readonly DraftRule[],
  picked: ReadonlySet<string> = new Set(),
): RuleChange[] {
  const was = new Map(before.map((rule) => [rule.id, rule]));
  const moved = movedRules(before, after, picked);
  const changes = after.flatMap((rule): RuleChange[] => {
    const old = rule.id === undefined ? undefined : was.get(rule.id);
    if (!old) return [{ what: 'added', rule }];
    const parts = changedParts(old, rule);
    const move = moved.get(rule.key);
    return [
      ...(parts.length > 0 ? [{ what: 'changed', before: old, rule, parts } as const] : []),
      ...(move ? [{ what: 'moved', rule, ...move } as const] : []),
    ];
  });
  const left = new Set(after.map(({ id }) => id));
  return [...changes, ...before.filter(({ id }) => !left.has(id)).map((rule) => ({ what: 'removed', rule }) as const)];
}

/** Rules that have to be taken out for the others of their phase to stand as before: as few as there can be. */
function movedRules(
  before: readonly Rule[],
  after: readonly DraftRule[],
  picked: ReadonlySet<string>,
): Map<string, { from: number; to: number }> {
  const moved = new Map<string, { from: number; to: number }>();
  for (const phase of PHASES) {
    const [old, now] = [ofPhase(before, phase), ofPhase(after, phase)];
    const stayed = now.filter(({ id }) => old.some((rule) => rule.id === id));
    const places = stayed.map(({ id }) => old.findIndex((rule) => rule.id === id));
    // A place more counts for more than who stands there.
    const weights = stayed.map(({ key }) => (picked.has(key) ? stayed.length : stayed.length + 1));
    const steady = heaviestRising(places, weights);
    stayed.forEach((rule, index) => {
      if (!steady.has(places[index]!)) moved.set(rule.key, { from: places[index]! + 1, to: now.indexOf(rule) + 1 });
    });
  }
  return moved;
}

/** The heaviest part of the numbers, in their order, in which each is larger than the one before. */
function heaviestRising(numbers: readonly number[], weights: readonly number[]): Set<number> {
  const nothing: Rising = { weight: 0, numbers: [] };
  const heavier = (heaviest: Rising, each: Rising) => (each.weight > heaviest.weight ? each : heaviest);
  const best: Rising[] = [];
  numbers.forEach((number, index) => {
    const before = best.filter((_, at) => numbers[at]! < number).reduce(heavier, nothing);
    best[index] = { weight: before.weight + weights[index]!, numbers: [...before.numbers, number] };
  });
  return new Set(best.reduce(heavier, nothing).numbers);
}

interface Rising {
  weight: number;
  numbers: readonly number[];
}
