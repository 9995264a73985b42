// What saving rules of a site and of the platform has in common.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Rule } from '../../contract/scalars/rule.ts';
import type { CompiledEntry } from '../../models/entries/kind.ts';
import type { CheckedRule } from '../../models/entries/rule-message.ts';
import { compileRules, listsOf } from '../../models/entries/rules.ts';
import { keepIpLists } from '../../models/ip-list.ts';
import { type RuleSet, writeRuleSet } from '../../models/rule-set.ts';
import type { Tx } from '../../runtime/write.ts';

const LISTS_IN_REFUSAL = 5;

export interface Owner {
  /** The site's, or PLATFORM. */
  id: string;
  clusterId: string | null;
}

/** Saves checked rules; answers the entry that they are. Throws IP_LIST_REFERENCE_UNKNOWN. */
export async function saveRules(
  tx: Tx,
  { id, clusterId }: Owner,
  checked: readonly CheckedRule[],
  updatedAt: Date,
): Promise<CompiledEntry | null> {
  const named = new Set(checked.flatMap(listsOf));
  const lists = await keepIpLists(tx.sql, [...named]);
  const unknown = [...named].filter((name) => !lists.has(name)).sort();
  if (unknown.length > 0) fail('IP_LIST_REFERENCE_UNKNOWN', { lists: unknown.slice(0, LISTS_IN_REFUSAL) });
  const compiled = compileRules(checked, clusterId === null ? null : id, lists);
  const uses = checked.map((rule, position) => ({
    position,
    rule: rule.rule,
    listIds: listsOf(rule).map((name) => lists.get(name)!),
  }));
  const set: RuleSet = { rules: checked.map(({ rule }) => rule), updatedAt };
  await writeRuleSet(tx.sql, { id, clusterId }, set, compiled, uses);
  return compiled;
}

/** What an audit entry says of the change: how many rules there are, and names of those that differ. */
export function ruleChanges(before: readonly Rule[], after: readonly Rule[]): Record<string, unknown> {
  const had = new Map(before.map((rule) => [rule.id, rule]));
  const has = new Set(after.map(({ id }) => id));
  const names = (rules: readonly Rule[]) => rules.map(({ name }) => name);
  return {
    entries: after.length,
    enabled: after.filter(({ enabled }) => enabled).length,
    added: names(after.filter(({ id }) => !had.has(id))),
    changed: names(after.filter((rule) => had.has(rule.id) && !isDeepStrictEqual(had.get(rule.id), rule))),
    removed: names(before.filter(({ id }) => !has.has(id))),
  };
}
