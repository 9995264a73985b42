import { fail } from '../../contract/errors.ts';
import { firstBrokenRule } from '../../models/rules/rule-set.ts';
import type { StoredParts } from '../../models/sites/stored-parts.ts';
import type { Tx } from '../../runtime/write.ts';

/** Throws RULE_INVALID where an enabled rule of the site does not compile any more: a save would publish its last form. */
export async function assertRulesCompile(sql: Tx['sql'], { rules }: StoredParts): Promise<void> {
  const broken = rules && (await firstBrokenRule(sql, rules));
  if (!broken) return;
  const { index, rule, field, error } = broken;
  fail('RULE_INVALID', {
    rule: index,
    ruleId: rule.id,
    name: rule.name,
    field: `/rules/${index}${field}`,
    code: error.code,
    position: error.position,
    params: error.params,
    message: error.message,
  });
}
