import type { ReasonEntries } from '../reason-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const siteFeatures = {
  clientIp: { capability: 'client-ip-v1', configured: true },
} satisfies SiteFeatureEntries;

export const reasons = {
  client_ip_updated: 'Client address mode changed.',
} satisfies ReasonEntries;
