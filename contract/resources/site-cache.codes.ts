import { type ErrorEntries, entry } from '../error-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  CACHE_RULE_PRIORITY_DUPLICATE: entry(
    400,
    'Two cache rules of the site have the priority `data.priority`. Give each rule its own.',
  ),
  PURGE_KEY_REQUIRED: entry(400, 'PURGE needs a key. Set `cacheSettings.purgeMethod.key`.'),
} satisfies ErrorEntries;

export const siteFeatures = {
  cache: { capability: 'cache-v1', configured: true },
  purgeMethod: { capability: 'purge-method-v1', configured: true },
} satisfies SiteFeatureEntries;
