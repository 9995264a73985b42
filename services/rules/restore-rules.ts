// Saves rules of a site as an earlier revision had them. Revisions know of rules that nodes got: those that are switched
// off now and were not among them stay, after the others.
import { MAX_SITE_RULES, type Rule } from '../../contract/scalars/rule.ts';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { listsOf, recompileRules } from '../../models/rules/compiled-rules.ts';
import { keepIpLists } from '../../models/rules/ip-list.ts';
import { checkRule } from '../../models/rules/rule-message.ts';
import { readSiteRules, writeRuleSet } from '../../models/rules/rule-set.ts';
import { type RulesSettings, SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';

export const rulesRestorer: SettingsRestorer = {
  kind: SITE_RULES_KIND,
  locks: 'site',
  async save(sql, clusterId, id, settings, now) {
    const before = (await readSiteRules(sql, id))!;
    const rules = withDrafts((settings as RulesSettings).rules, before.rules);
    const checked = rules.map((rule) => checkRule(rule));
    const named = checked.map((one) => ('error' in one ? [] : listsOf(one)));
    const lists = await keepIpLists(sql, [...new Set(named.flat())]);
    const { entry, broken } = recompileRules(rules, id, lists, null);
    const uses = rules.map((rule, position) => ({
      position,
      rule,
      listIds: named[position]!.flatMap((name) => lists.get(name) ?? []),
    }));
    const updatedAt = nextUpdatedAt(before.updatedAt, now);
    const compiled = { entry, broken: broken.map(({ rule }) => rule.id) };
    await writeRuleSet(sql, { id, clusterId }, { rules, updatedAt }, compiled, uses);
  },
};

function withDrafts(restored: readonly Rule[], now: readonly Rule[]): Rule[] {
  const ids = new Set(restored.map(({ id }) => id));
  const drafts = now.filter(({ id, enabled }) => !enabled && !ids.has(id));
  return [...restored, ...drafts].slice(0, MAX_SITE_RULES);
}
