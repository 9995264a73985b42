import type { AlertKindEntries } from '../alert-kind.ts';
import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  RULE_INVALID: entry(400, 'A rule is not valid, or a rule needs something that the change removes; see `data`.'),
  IP_LIST_REFERENCE_UNKNOWN: entry(
    404,
    'A rule names IP lists that do not exist; see `data.lists`. Create them or change the rule.',
  ),
} satisfies ErrorEntries;

/** Stored rules that this version of the console refuses; nodes have them as they were compiled before. */
export const attention = {
  platform_rules_invalid: { order: 22, level: 'act', page: '/platform-rules' },
  site_rules_invalid: { order: 23, level: 'act', page: '/sites' },
} satisfies AttentionEntries;

export const siteFeatures = {
  rulesV2: { capability: 'rules-v2', configured: true },
  rulesV3: { capability: 'rules-v3', configured: true },
} satisfies SiteFeatureEntries;

export const alerts = {
  stored_rule_invalid: {
    order: 120,
    audience: 'everything',
    text: {
      en: {
        firing: 'Stored rules of {name} are no longer valid. Nodes keep their last valid form.',
        resolved: 'All stored rules of {name} are valid again.',
      },
      'zh-CN': {
        firing: '{name} 已保存的规则不再有效。节点沿用其最后有效的版本。',
        resolved: '{name} 已保存的规则均已恢复有效。',
      },
    },
  },
} satisfies AlertKindEntries;
