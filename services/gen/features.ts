// Written by `npm run generate` from the files it imports. Changes here are lost.
import { feature as acmeFanout } from '../acme-fanout/feature.ts';
import { feature as alerts } from '../alerts/feature.ts';
import { feature as analytics } from '../analytics/feature.ts';
import { feature as auditLogs } from '../audit-logs/feature.ts';
import { feature as backups } from '../backups/feature.ts';
import { feature as bans } from '../bans/feature.ts';
import { feature as bulkRedirects } from '../bulk-redirects/feature.ts';
import { feature as cacheTasks } from '../cache-tasks/feature.ts';
import { feature as cache } from '../cache/feature.ts';
import { feature as certificates } from '../certificates/feature.ts';
import { feature as changes } from '../changes/feature.ts';
import { feature as clientIp } from '../client-ip/feature.ts';
import { feature as clusters } from '../clusters/feature.ts';
import { feature as dns } from '../dns/feature.ts';
import { feature as enrollment } from '../enrollment/feature.ts';
import { feature as errorPages } from '../error-pages/feature.ts';
import { feature as headerLimit } from '../header-limit/feature.ts';
import { feature as housekeeping } from '../housekeeping/feature.ts';
import { feature as jobs } from '../jobs/feature.ts';
import { feature as logs } from '../logs/feature.ts';
import { feature as nodeChannel } from '../node-channel/feature.ts';
import { feature as nodes } from '../nodes/feature.ts';
import { feature as protection } from '../protection/feature.ts';
import { feature as rollouts } from '../rollouts/feature.ts';
import { feature as ruleHits } from '../rule-hits/feature.ts';
import { feature as rules } from '../rules/feature.ts';
import { feature as security } from '../security/feature.ts';
import { feature as sessionTickets } from '../session-tickets/feature.ts';
import { feature as siteHttps } from '../site-https/feature.ts';
import { feature as sites } from '../sites/feature.ts';
import { feature as unknownHosts } from '../unknown-hosts/feature.ts';
import { feature as usage } from '../usage/feature.ts';
import { feature as waf } from '../waf/feature.ts';

export const FEATURES = [
  acmeFanout,
  alerts,
  analytics,
  auditLogs,
  backups,
  bans,
  bulkRedirects,
  cacheTasks,
  cache,
  certificates,
  changes,
  clientIp,
  clusters,
  dns,
  enrollment,
  errorPages,
  headerLimit,
  housekeeping,
  jobs,
  logs,
  nodeChannel,
  nodes,
  protection,
  rollouts,
  ruleHits,
  rules,
  security,
  sessionTickets,
  siteHttps,
  sites,
  unknownHosts,
  usage,
  waf,
] as const;
