// Written by `npm run generate` from the files it imports. Changes here are lost.
import * as accessKeys from '../resources/access-keys.ts';
import * as account from '../resources/account.ts';
import * as acmeDirectory from '../resources/acme-directory.ts';
import * as addresses from '../resources/addresses.ts';
import * as alertSilences from '../resources/alert-silences.ts';
import * as alerts from '../resources/alerts.ts';
import * as analytics from '../resources/analytics.ts';
import * as auditLogs from '../resources/audit-logs.ts';
import * as backups from '../resources/backups.ts';
import * as bans from '../resources/bans.ts';
import * as bulkRedirects from '../resources/bulk-redirects.ts';
import * as cacheExplain from '../resources/cache-explain.ts';
import * as cacheTasks from '../resources/cache-tasks.ts';
import * as cacheUsage from '../resources/cache-usage.ts';
import * as cacheZone from '../resources/cache-zone.ts';
import * as ccTemplate from '../resources/cc-template.ts';
import * as certificateRequests from '../resources/certificate-requests.ts';
import * as certificates from '../resources/certificates.ts';
import * as changes from '../resources/changes.ts';
import * as clientIp from '../resources/client-ip.ts';
import * as clusterDns from '../resources/cluster-dns.ts';
import * as clusters from '../resources/clusters.ts';
import * as dnsCredentials from '../resources/dns-credentials.ts';
import * as dns from '../resources/dns.ts';
import * as enrollmentTokens from '../resources/enrollment-tokens.ts';
import * as errorPages from '../resources/error-pages.ts';
import * as headerLimit from '../resources/header-limit.ts';
import * as httpsCheck from '../resources/https-check.ts';
import * as ipLists from '../resources/ip-lists.ts';
import * as jobs from '../resources/jobs.ts';
import * as listenPorts from '../resources/listen-ports.ts';
import * as live from '../resources/live.ts';
import * as logSettings from '../resources/log-settings.ts';
import * as logTail from '../resources/log-tail.ts';
import * as logs from '../resources/logs.ts';
import * as lostBans from '../resources/lost-bans.ts';
import * as maintenance from '../resources/maintenance.ts';
import * as nodeChannelSettings from '../resources/node-channel-settings.ts';
import * as nodeGroups from '../resources/node-groups.ts';
import * as nodes from '../resources/nodes.ts';
import * as originAllowList from '../resources/origin-allow-list.ts';
import * as originHealth from '../resources/origin-health.ts';
import * as originTest from '../resources/origin-test.ts';
import * as overview from '../resources/overview.ts';
import * as protectionSettings from '../resources/protection-settings.ts';
import * as protection from '../resources/protection.ts';
import * as regions from '../resources/regions.ts';
import * as revisions from '../resources/revisions.ts';
import * as rollout from '../resources/rollout.ts';
import * as ruleHits from '../resources/rule-hits.ts';
import * as ruleTrial from '../resources/rule-trial.ts';
import * as rules from '../resources/rules.ts';
import * as security from '../resources/security.ts';
import * as serviceAccounts from '../resources/service-accounts.ts';
import * as sessionTicketKeys from '../resources/session-ticket-keys.ts';
import * as settings from '../resources/settings.ts';
import * as siteCache from '../resources/site-cache.ts';
import * as siteDelivery from '../resources/site-delivery.ts';
import * as siteHealthCheck from '../resources/site-health-check.ts';
import * as siteHttps from '../resources/site-https.ts';
import * as siteLogs from '../resources/site-logs.ts';
import * as siteOrigins from '../resources/site-origins.ts';
import * as siteStanding from '../resources/site-standing.ts';
import * as siteWaf from '../resources/site-waf.ts';
import * as sites from '../resources/sites.ts';
import * as system from '../resources/system.ts';
import * as unknownHosts from '../resources/unknown-hosts.ts';
import * as unpublished from '../resources/unpublished.ts';
import * as usage from '../resources/usage.ts';
import * as wafEvents from '../resources/waf-events.ts';
import * as wafExclusions from '../resources/waf-exclusions.ts';
import * as wafGuidance from '../resources/waf-guidance.ts';
import * as wafPacks from '../resources/waf-packs.ts';

export const RESOURCE_FILES = [
  accessKeys,
  account,
  acmeDirectory,
  addresses,
  alertSilences,
  alerts,
  analytics,
  auditLogs,
  backups,
  bans,
  bulkRedirects,
  cacheExplain,
  cacheTasks,
  cacheUsage,
  cacheZone,
  ccTemplate,
  certificateRequests,
  certificates,
  changes,
  clientIp,
  clusterDns,
  clusters,
  dnsCredentials,
  dns,
  enrollmentTokens,
  errorPages,
  headerLimit,
  httpsCheck,
  ipLists,
  jobs,
  listenPorts,
  live,
  logSettings,
  logTail,
  logs,
  lostBans,
  maintenance,
  nodeChannelSettings,
  nodeGroups,
  nodes,
  originAllowList,
  originHealth,
  originTest,
  overview,
  protectionSettings,
  protection,
  regions,
  revisions,
  rollout,
  ruleHits,
  ruleTrial,
  rules,
  security,
  serviceAccounts,
  sessionTicketKeys,
  settings,
  siteCache,
  siteDelivery,
  siteHealthCheck,
  siteHttps,
  siteLogs,
  siteOrigins,
  siteStanding,
  siteWaf,
  sites,
  system,
  unknownHosts,
  unpublished,
  usage,
  wafEvents,
  wafExclusions,
  wafGuidance,
  wafPacks,
] as const;
