// What warnings need to know beside the rules.

import type { Static } from 'typebox';
import type { RuleWarning } from '../../../contract/resources/rules.ts';
import { parseAddress } from '../../../contract/scalars/cidr.ts';
import type { Rule } from '../../../contract/scalars/rule.ts';
import { someNodeLacks } from '../../../models/config/required-capabilities.ts';
import { type CheckedRule, checkRule } from '../../../models/rules/rule-message.ts';
import { readPlatformRules } from '../../../models/rules/rule-set.ts';
import { listsOf } from '../../../models/security/address-dossier.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { ruleWarnings } from './warnings.ts';

type Sql = Runtime['pools']['api'];
type Warning = Static<typeof RuleWarning>;

/** Warnings about the rules of a site of the cluster, for somebody with an address. */
export async function warningsOfSite(
  sql: Sql,
  rules: readonly Rule[],
  { clusterId, address }: { clusterId: string; address: string | null },
): Promise<Warning[]> {
  if (rules.length === 0) return [];
  const platform = compiling((await readPlatformRules(sql)).rules);
  return warnings(sql, compiling(rules), platform, { clusterId, address });
}

/** The same about the rules of the platform. */
export async function warningsOfPlatform(sql: Sql, rules: readonly Rule[], address: string | null): Promise<Warning[]> {
  return rules.length === 0 ? [] : warnings(sql, compiling(rules), [], { clusterId: null, address });
}

async function warnings(
  sql: Sql,
  rules: readonly CheckedRule[],
  platform: readonly CheckedRule[],
  { clusterId, address }: { clusterId: string | null; address: string | null },
): Promise<Warning[]> {
  const known = address !== null && parseAddress(address) ? address : null;
  const lists = known === null ? [] : await listsOf(sql, known);
  const ja4Held = await someNodeLacks(sql, clusterId, 'ja4-v1');
  const names = new Set(lists.map(({ name }) => name));
  return ruleWarnings(rules, platform, { address: known, lists: names, ja4Held });
}

/** Those that the language takes. */
function compiling(rules: readonly Rule[]): CheckedRule[] {
  return rules.map(checkRule).filter((checked): checked is CheckedRule => !('error' in checked));
}
