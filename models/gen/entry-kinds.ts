// Written by `npm run generate` from the files it imports. Changes here are lost.
import { cacheZoneKind } from '../cache/cache-zone.entry.ts';
import { nodeCacheKind } from '../cache/node-cache.entry.ts';
import { siteCacheKind } from '../cache/site-cache.entry.ts';
import { sitePurgeMethodKind } from '../cache/site-purge-method.entry.ts';
import { challengeKeysKind } from '../clusters/challenge-keys.entry.ts';
import { clientIpKind } from '../clusters/client-ip.entry.ts';
import { headerLimitKind } from '../clusters/header-limit.entry.ts';
import { listenPortsKind } from '../clusters/listen-ports.entry.ts';
import { unknownHostsKind } from '../clusters/unknown-hosts.entry.ts';
import { platformPagesKind } from '../pages/platform-pages.entry.ts';
import { siteMaintenanceKind } from '../pages/site-maintenance.entry.ts';
import { sitePagesKind } from '../pages/site-pages.entry.ts';
import { ipListKind } from '../rules/ip-list.entry.ts';
import { ipListChunkKind } from '../rules/ip-list.entry.ts';
import { platformRulesKind } from '../rules/platform-rules.entry.ts';
import { siteRulesKind } from '../rules/site-rules.entry.ts';
import { ccTemplateKind } from '../security/cc-template.entry.ts';
import { platformProtectionKind } from '../security/platform-protection.entry.ts';
import { protectionKind } from '../security/protection.entry.ts';
import { bulkRedirectsKind } from '../sites/bulk-redirects.entry.ts';
import { originPolicyKind } from '../sites/origin-policy.entry.ts';
import { siteCompressionKind } from '../sites/site-compression.entry.ts';
import { siteContentKind } from '../sites/site-content.entry.ts';
import { siteHttpsKind } from '../sites/site-https.entry.ts';
import { siteLogsKind } from '../sites/site-logs.entry.ts';
import { siteRequestsKind } from '../sites/site-requests.entry.ts';
import { siteKind } from '../sites/site.entry.ts';
import { siteWafKind } from '../waf/site-waf.entry.ts';

export const FOUND_KINDS = [
  cacheZoneKind,
  nodeCacheKind,
  siteCacheKind,
  sitePurgeMethodKind,
  challengeKeysKind,
  clientIpKind,
  headerLimitKind,
  listenPortsKind,
  unknownHostsKind,
  platformPagesKind,
  siteMaintenanceKind,
  sitePagesKind,
  ipListKind,
  ipListChunkKind,
  platformRulesKind,
  siteRulesKind,
  ccTemplateKind,
  platformProtectionKind,
  protectionKind,
  bulkRedirectsKind,
  originPolicyKind,
  siteCompressionKind,
  siteContentKind,
  siteHttpsKind,
  siteLogsKind,
  siteRequestsKind,
  siteKind,
  siteWafKind,
] as const;
