import type { AlertKindEntries } from '../alert-kind.ts';
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

export const alerts = {
  origin_unavailable: {
    order: 40,
    audience: 'site',
    text: {
      en: { firing: 'A node reaches no origin of site {name}.', resolved: 'Nodes reach origins of site {name} again.' },
      'zh-CN': { firing: '有节点连不上站点 {name} 的任何源站。', resolved: '各节点已能连上站点 {name} 的源站。' },
    },
  },
  high_5xx: {
    order: 50,
    audience: 'site',
    text: {
      en: {
        firing: '{percent}% of the responses of site {name} are server errors (5xx).',
        resolved: 'Server errors (5xx) of site {name} are below the limit again.',
      },
      'zh-CN': {
        firing: '站点 {name} 有 {percent}% 的响应是服务器错误（5xx）。',
        resolved: '站点 {name} 的服务器错误（5xx）已低于阈值。',
      },
    },
  },
  site_failing: {
    order: 60,
    audience: 'site',
    text: {
      en: {
        firing: 'Site {name} fails for many visitors: {percent}% of the requests of the last minute.',
        resolved: 'Site {name} no longer fails for many visitors.',
      },
      'zh-CN': {
        firing: '站点 {name} 对许多访客失败：最近一分钟内 {percent}% 的请求。',
        resolved: '站点 {name} 不再对许多访客失败。',
      },
    },
  },
} satisfies AlertKindEntries;
