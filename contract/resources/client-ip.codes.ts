import type { SiteFeatureEntries } from '../site-feature.ts';

export const siteFeatures = {
  clientIp: { capability: 'client-ip-v1', configured: true },
} satisfies SiteFeatureEntries;
