// What saving rules of a site and of the platform has in common.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Rule } from '../../contract/scalars/rule.ts';
import type { CompiledEntry } from '../../models/config/entry-kind.ts';
import { compileRules, listsOf } from '../../models/rules/compiled-rules.ts';
import { keepIpLists } from '../../models/rules/ip-list.ts';
import type { CheckedRule, ListIds } from '../../models/rules/rule-message.ts';
import { type ListUse, writeRuleSet } from '../../models/rules/rule-set.ts';
import type { Tx } from '../../runtime/write.ts';

const LISTS_IN_REFUSAL = 5;

export interface Owner {
  /** The site's, or PLATFORM. */
  id: string;
  /** Null for the platform. */
  clusterId: string | null;
}

/** Saves checked rules; answers the entry that they are. Throws IP_LIST_REFERENCE_UNKNOWN. */
export async function saveRules(
  sql: Tx['sql'],
  owner: Owner,
  checked: readonly CheckedRule[],
  updatedAt: Date,
): Promise<CompiledEntry | null> {
  const named = new Set(checked.flatMap(listsOf));
  const lists = await keepIpLists(sql, [...named]);
  const unknown = [...named].filter((name) => !lists.has(name)).sort();
  if (unknown.length > 0) fail('IP_LIST_REFERENCE_UNKNOWN', { lists: unknown.slice(0, LISTS_IN_REFUSAL) });
  const entry = compileRules(checked, owner.clusterId === null ? null : owner.id, lists);
  const rules = checked.map(({ rule }) => rule);
  await writeRuleSet(sql, owner, { rules, updatedAt }, { entry, broken: [] }, listUses(checked, lists));
  return entry;
}

function listUses(checked: readonly CheckedRule[], lists: ListIds): ListUse[] {
  return checked.map((one, position) => ({
    position,
    rule: one.rule,
    listIds: listsOf(one).map((name) => lists.get(name)!),
  }));
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
