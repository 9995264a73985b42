// What the kinds "site-rules" and "platform-rules" have in common: rules of one owner, compiled.
//
// A stored rule that does not compile any more, because the language changed, stands in the entry as it was compiled
// last. One that never was leaves a rule that no node can use: nodes keep the entry before, or refuse requests.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Rule } from '../../contract/scalars/rule.ts';
import { type Rule as RuleMessage, SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { listOwner } from '../config/entry-owner.ts';
import { capabilitiesOfRules } from './rule-capabilities.ts';
import {
  type CheckedRule,
  checkRule,
  type ExpressionFault,
  type ListIds,
  ruleMessage,
  unusableRule,
} from './rule-message.ts';

/** Of both kinds; raised with every change of the language or of the bytes, so that stored rules are looked at again. */
export const RULES_COMPILER_VERSION = 1;

/** The entry of 64 rules of the largest size, with characters of three bytes; half as many of the platform have half. */
export const MAX_RULES_BYTES = 16 * 1024 * 1024;

/** A stored rule that does not compile. */
export interface BrokenRule extends ExpressionFault {
  rule: Rule;
}

export interface CompiledRules {
  /** Null without an enabled rule. */
  entry: CompiledEntry | null;
  broken: BrokenRule[];
}

/** The entry of checked rules; `siteId` is null for those of the platform, `lists` has every list that they name. */
export function compileRules(
  rules: readonly CheckedRule[],
  siteId: string | null,
  lists: ListIds,
): CompiledEntry | null {
  const enabled = rules.filter(({ rule }) => rule.enabled);
  return entryOf(
    enabled.map(({ rule }) => rule),
    enabled.map((rule) => ruleMessage(rule, lists)),
    { features: capabilitiesOfRules(enabled), refs: refsOf(enabled, siteId, lists) },
  );
}

/** The same of stored rules; `former` is the entry that they were compiled to last. */
export function recompileRules(
  rules: readonly Rule[],
  siteId: string | null,
  lists: ListIds,
  former: Pick<CompiledEntry, 'body' | 'features' | 'refs'> | null,
): CompiledRules {
  const enabled = rules.filter((rule) => rule.enabled);
  const before = new Map((former ? fromBinary(SiteRulesSchema, former.body).rules : []).map((rule) => [rule.id, rule]));
  const broken: BrokenRule[] = [];
  const compiling: CheckedRule[] = [];
  const messages = enabled.map((rule): RuleMessage => {
    const checked = checkStored(rule, lists);
    if ('error' in checked) {
      broken.push({ rule, ...checked });
      return before.get(rule.id) ?? unusableRule(rule);
    }
    compiling.push(checked);
    return ruleMessage(checked, lists);
  });
  // What a rule of before needs nobody can tell from its message: what all needed then is more, and never too little.
  const kept = broken.length > 0 ? former : null;
  const features = union(capabilitiesOfRules(compiling), kept?.features ?? []);
  const refs = union(refsOf(compiling, siteId, lists), kept?.refs ?? []);
  return { entry: entryOf(enabled, messages, { features, refs }), broken };
}

/** Groups of origins that the rules name, sorted. */
export function groupsOf(rules: readonly Rule[]): string[] {
  const named = rules.flatMap(({ action }) =>
    action.kind === 'origin' && action.originGroup ? [action.originGroup] : [],
  );
  return union(named, []);
}

/** Names of the IP lists that a checked rule refers to. */
export function listsOf({ facts }: CheckedRule): string[] {
  return union(
    facts.flatMap(({ lists }) => lists),
    [],
  );
}

function checkStored(rule: Rule, lists: ListIds): CheckedRule | ExpressionFault {
  const checked = checkRule(rule);
  if ('error' in checked) return checked;
  const unknown = listsOf(checked).find((name) => !lists.has(name));
  if (unknown === undefined) return checked;
  const params = { list: unknown };
  const message = `The IP list ${unknown} does not exist.`;
  return { field: '/expression', error: { code: 'unknown_list', position: 0, params, message } };
}

function entryOf(
  rules: readonly Rule[],
  messages: RuleMessage[],
  needs: Pick<CompiledEntry, 'features' | 'refs'>,
): CompiledEntry | null {
  if (rules.length === 0) return null;
  // Both kinds have this form.
  const body = toBinary(SiteRulesSchema, create(SiteRulesSchema, { rules: messages }));
  return { body, ...needs, settings: { rules } };
}

function refsOf(rules: readonly CheckedRule[], siteId: string | null, lists: ListIds): string[] {
  const ids = rules.flatMap(listsOf).map((name) => listOwner(lists.get(name)!));
  const groups = groupsOf(rules.map(({ rule }) => rule)).map((group) => `group:${siteId}/${group}`);
  return union(ids, groups);
}

function union(some: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...some, ...others])].sort();
}
