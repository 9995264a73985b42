// Rules as they stand in a list that is being edited. Pure.
import type { Phase } from '../../../../contract/expression/phases.ts';
import type { Rule } from '../../../../contract/scalars/rule.ts';
import type { RuleAction } from '../../../../contract/scalars/rule-action.ts';
import { same } from '../../shared/forms/paths.ts';

export type { Rule, RuleAction };
export type ActionKind = RuleAction['kind'];
export type ActionOf<K extends ActionKind> = Extract<RuleAction, { kind: K }>;

/** A rule of the list; one that was never saved has a key of its own and no id. */
export interface DraftRule extends Omit<Rule, 'id'> {
  key: string;
  id?: string;
}

/** What of a rule a person can change. */
export const PARTS = ['name', 'phase', 'expression', 'enabled', 'action'] as const;
export type RulePart = (typeof PARTS)[number];

export const draftOf = (rule: Rule): DraftRule => ({ ...rule, key: rule.id });

/** What is sent of a list. */
export function inputOf(rules: readonly DraftRule[]): Omit<DraftRule, 'key'>[] {
  return rules.map(({ key: _key, ...rule }) => rule);
}

/** What differs between two states of one rule. */
export function changedParts(before: Omit<DraftRule, 'key'>, after: Omit<DraftRule, 'key'>): RulePart[] {
  return PARTS.filter((part) => !same(before[part], after[part]));
}

/** The rules of a phase in the order of the list. */
export function ofPhase<T extends { phase: Phase }>(rules: readonly T[], phase: Phase): T[] {
  return rules.filter((rule) => rule.phase === phase);
}

/** The list with a rule moved to another place among those of its phase; the same where there is no such place. */
export function movedInPhase(rules: readonly DraftRule[], key: string, to: number): DraftRule[] {
  const rule = rules.find((each) => each.key === key);
  if (!rule) return [...rules];
  const peers = ofPhase(rules, rule.phase);
  if (to < 0 || to >= peers.length) return [...rules];
  const order = peers.filter((each) => each !== rule).toSpliced(to, 0, rule);
  // Rules of other phases keep their places.
  let next = 0;
  return rules.map((each) => (each.phase === rule.phase ? order[next++]! : each));
}
