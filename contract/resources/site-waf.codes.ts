import type { AlertKindEntries } from '../alert-kind.ts';
import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  WAF_RULE_NOT_EXCLUDABLE: entry(
    400,
    'Rules 901xxx, 949xxx, 959xxx and 980xxx control the inspection and cannot be excluded; see ' +
      '`data.ids` and `data.families`.',
  ),
} satisfies ErrorEntries;

export const siteFeatures = {
  crs: { capability: 'modsecurity-v1', configured: true },
  crsExclusions: { capability: 'waf-exclusions-v1', configured: true },
  crsBuiltInExceptions: { capability: 'waf-exceptions-v1', configured: true },
} satisfies SiteFeatureEntries;

export const reasons = {
  site_waf_updated: 'WAF of a site changed.',
} satisfies ReasonEntries;

export const attention = {
  sites_waf_share: { order: 35, level: 'watch', page: '/sites' },
} satisfies AttentionEntries;

export const alerts = {
  waf_share: {
    order: 80,
    audience: 'site',
    text: {
      en: {
        firing: 'The WAF takes {observed}% of the requests of site {name} for attacks.',
        resolved: 'The share of attacks on site {name} is below the limit again.',
      },
      'zh-CN': {
        firing: 'WAF 认为站点 {name} 有 {observed}% 的请求是攻击。',
        resolved: '站点 {name} 的攻击占比已低于阈值。',
      },
    },
  },
} satisfies AlertKindEntries;
