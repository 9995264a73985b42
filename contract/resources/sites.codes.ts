import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  SITE_NOT_FOUND: entry(404, 'This site does not exist.'),
  SITE_DISABLED: entry(409, 'The site is disabled. Enable it first.'),
  DOMAIN_IN_USE: entry(409, 'A domain already belongs to another site. Remove it there first.'),
  DOMAIN_INVALID: entry(400, '`data.domain` is not a valid domain. Use a host name, *.name, .name or ~regex.'),
  ORIGIN_ADDRESS_FORBIDDEN: entry(
    400,
    'The origin has a special-purpose address. Use a public one, or add its range to the origin allow list.',
  ),
  ORIGIN_HOST_HEADER_INVALID: entry(
    400,
    '`hostHeader` of an origin is not valid. Use a host name or an IP address, with an optional port.',
  ),
  ORIGIN_GRPC_REQUIRES_HTTP2: entry(400, 'gRPC needs HTTP/2. Set `protocol` to `http2`.'),
} satisfies ErrorEntries;

export const attention = {
  site_failing: { order: 23, level: 'act', page: '/sites' },
  sites_unserved: { order: 24, level: 'act', page: '/sites?state=unserved' },
  origins_down: { order: 27, level: 'act', page: '/sites' },
  certificates_ending: { order: 28, level: 'act', page: '/sites' },
} satisfies AttentionEntries;

/** Of the specification. */
export const siteFeatures = {
  activeHealthCheck: { capability: 'active-health-v1', configured: true },
  sessionAffinity: { capability: 'session-affinity-v1', configured: true },
  originHttp2: { capability: 'origin-http2-v1', configured: true },
  errorPages: { capability: 'error-pages-v1', configured: true },
  purgeByTag: { capability: 'purge-tag-v1', configured: true },
  prefetchVariants: { capability: 'prefetch-v2', configured: true },
  siteContent: { capability: 'site-content-v1', configured: true },
} satisfies SiteFeatureEntries;

export const reasons = {
  site_created: 'Site created.',
  site_updated: 'Site changed.',
  site_deleted: 'Site deleted.',
  site_enabled: 'Site enabled.',
  site_disabled: 'Site disabled.',
} satisfies ReasonEntries;
