// Written by `npm run generate` from the files it imports. Changes here are lost.
import { errors as accessKeys } from '../resources/access-keys.codes.ts';
import { errors as account } from '../resources/account.codes.ts';
import { errors as acmeDirectory } from '../resources/acme-directory.codes.ts';
import { errors as alertSilences } from '../resources/alert-silences.codes.ts';
import { errors as alerts } from '../resources/alerts.codes.ts';
import { errors as analytics } from '../resources/analytics.codes.ts';
import { errors as backups } from '../resources/backups.codes.ts';
import { errors as bans } from '../resources/bans.codes.ts';
import { errors as bulkRedirects } from '../resources/bulk-redirects.codes.ts';
import { errors as cacheTasks } from '../resources/cache-tasks.codes.ts';
import { errors as certificateRequests } from '../resources/certificate-requests.codes.ts';
import { errors as certificates } from '../resources/certificates.codes.ts';
import { errors as changes } from '../resources/changes.codes.ts';
import { errors as clusters } from '../resources/clusters.codes.ts';
import { errors as dnsCredentials } from '../resources/dns-credentials.codes.ts';
import { errors as dns } from '../resources/dns.codes.ts';
import { errors as enrollmentTokens } from '../resources/enrollment-tokens.codes.ts';
import { errors as errorPages } from '../resources/error-pages.codes.ts';
import { errors as ipLists } from '../resources/ip-lists.codes.ts';
import { errors as jobs } from '../resources/jobs.codes.ts';
import { errors as listenPorts } from '../resources/listen-ports.codes.ts';
import { errors as live } from '../resources/live.codes.ts';
import { errors as nodeGroups } from '../resources/node-groups.codes.ts';
import { errors as nodes } from '../resources/nodes.codes.ts';
import { errors as originTest } from '../resources/origin-test.codes.ts';
import { errors as protection } from '../resources/protection.codes.ts';
import { errors as regions } from '../resources/regions.codes.ts';
import { errors as revisions } from '../resources/revisions.codes.ts';
import { errors as rollout } from '../resources/rollout.codes.ts';
import { errors as rules } from '../resources/rules.codes.ts';
import { errors as serviceAccounts } from '../resources/service-accounts.codes.ts';
import { errors as sessionTicketKeys } from '../resources/session-ticket-keys.codes.ts';
import { errors as siteCache } from '../resources/site-cache.codes.ts';
import { errors as siteHttps } from '../resources/site-https.codes.ts';
import { errors as siteLogs } from '../resources/site-logs.codes.ts';
import { errors as siteWaf } from '../resources/site-waf.codes.ts';
import { errors as sites } from '../resources/sites.codes.ts';
import { errors as system } from '../resources/system.codes.ts';
import { errors as unknownHosts } from '../resources/unknown-hosts.codes.ts';
import { errors as usage } from '../resources/usage.codes.ts';

export const ERROR_LISTS = [
  accessKeys,
  account,
  acmeDirectory,
  alertSilences,
  alerts,
  analytics,
  backups,
  bans,
  bulkRedirects,
  cacheTasks,
  certificateRequests,
  certificates,
  changes,
  clusters,
  dnsCredentials,
  dns,
  enrollmentTokens,
  errorPages,
  ipLists,
  jobs,
  listenPorts,
  live,
  nodeGroups,
  nodes,
  originTest,
  protection,
  regions,
  revisions,
  rollout,
  rules,
  serviceAccounts,
  sessionTicketKeys,
  siteCache,
  siteHttps,
  siteLogs,
  siteWaf,
  sites,
  system,
  unknownHosts,
  usage,
] as const;
