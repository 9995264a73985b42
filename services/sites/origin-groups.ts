import { fail } from '../../contract/errors.ts';
import { rulesWithGroups } from '../../models/rules/rule-set.ts';
import type { SiteContent, SiteRow } from '../../models/sites/site.ts';
import type { Tx } from '../../runtime/write.ts';

const RULES_IN_REFUSAL = 5;

/** Throws RULE_INVALID for a group that a rule of the site names, enabled or not, and that the change takes away. */
export async function assertGroupsUnused(sql: Tx['sql'], before: SiteRow, after: SiteContent): Promise<void> {
  const removed = [...groupsOf(before).difference(groupsOf(after))];
  if (removed.length === 0) return;
  const using = await rulesWithGroups(sql, before.id, removed);
  if (using.length === 0) return;
  const { group } = using[0]!;
  const rules = using.filter((rule) => rule.group === group).map(({ id, name }) => ({ id, name }));
  fail('RULE_INVALID', {
    code: 'group_in_use',
    field: '/origins',
    params: { group },
    rules: rules.slice(0, RULES_IN_REFUSAL),
    message:
      'A rule of the site uses an origin group that this change removes. Keep the group, or change the rule first.',
  });
}

function groupsOf({ origins }: SiteContent): Set<string> {
  return new Set(origins.map(({ group }) => group));
}
