import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { SECOND_MS } from '../../mixins/sweep.ts';
import { ruleListUsers } from '../../models/rules/rule-list-users.ts';
import { brokenRules } from '../../models/rules/rule-set.ts';
import { recompileStored } from './recompile-rules.ts';
import { rulesRestorer } from './restore-rules.ts';

export const feature = {
  restores: [rulesRestorer],
  jobs: [{ name: 'stored-rules', everyMs: 10 * SECOND_MS, run: recompileStored }],
  ipListUsers: ruleListUsers,
  attention: {
    kinds: { platform_rules_invalid: { alert: 'installation' }, site_rules_invalid: { alert: 'site' } },
    async find(sql, clusterId) {
      const { ofPlatform, sites, named, subjects } = await brokenRules(sql, clusterId);
      const things = named.map((site) => ({ type: 'site' as const, ...site, reason: null }));
      return [
        ...(ofPlatform > 0 ? [{ kind: 'platform_rules_invalid', count: ofPlatform } as const] : []),
        ...(sites > 0 ? [{ kind: 'site_rules_invalid', count: sites, named: things, subjects } as const] : []),
      ];
    },
  },
  alerts: {
    kinds: ['stored_rule_invalid'],
    async find(sql) {
      const { ofPlatform, subjects } = await brokenRules(sql, null);
      return [
        ...(ofPlatform > 0 ? [{ kind: 'stored_rule_invalid', subject: 'installation' as const, id: '' }] : []),
        ...subjects.map((id) => ({ kind: 'stored_rule_invalid', subject: 'site' as const, id })),
      ];
    },
  },
} satisfies ServiceFeature;
