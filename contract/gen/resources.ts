// Written by `npm run generate` from the files it imports. Changes here are lost.
import * as accessKeys from '../../contract/resources/access-keys.ts';
import * as account from '../../contract/resources/account.ts';
import * as auditLogs from '../../contract/resources/audit-logs.ts';
import * as bans from '../../contract/resources/bans.ts';
import * as ccTemplate from '../../contract/resources/cc-template.ts';
import * as changes from '../../contract/resources/changes.ts';
import * as clientIp from '../../contract/resources/client-ip.ts';
import * as clusters from '../../contract/resources/clusters.ts';
import * as enrollmentTokens from '../../contract/resources/enrollment-tokens.ts';
import * as ipLists from '../../contract/resources/ip-lists.ts';
import * as live from '../../contract/resources/live.ts';
import * as nodeChannelSettings from '../../contract/resources/node-channel-settings.ts';
import * as nodeGroups from '../../contract/resources/node-groups.ts';
import * as nodes from '../../contract/resources/nodes.ts';
import * as originAllowList from '../../contract/resources/origin-allow-list.ts';
import * as overview from '../../contract/resources/overview.ts';
import * as protectionSettings from '../../contract/resources/protection-settings.ts';
import * as protection from '../../contract/resources/protection.ts';
import * as regions from '../../contract/resources/regions.ts';
import * as revisions from '../../contract/resources/revisions.ts';
import * as security from '../../contract/resources/security.ts';
import * as serviceAccounts from '../../contract/resources/service-accounts.ts';
import * as settings from '../../contract/resources/settings.ts';
import * as siteDelivery from '../../contract/resources/site-delivery.ts';
import * as siteOrigins from '../../contract/resources/site-origins.ts';
import * as sites from '../../contract/resources/sites.ts';
import * as system from '../../contract/resources/system.ts';
import * as unknownHosts from '../../contract/resources/unknown-hosts.ts';

export const RESOURCE_FILES = [
  accessKeys,
  account,
  auditLogs,
  bans,
  ccTemplate,
  changes,
  clientIp,
  clusters,
  enrollmentTokens,
  ipLists,
  live,
  nodeChannelSettings,
  nodeGroups,
  nodes,
  originAllowList,
  overview,
  protectionSettings,
  protection,
  regions,
  revisions,
  security,
  serviceAccounts,
  settings,
  siteDelivery,
  siteOrigins,
  sites,
  system,
  unknownHosts,
] as const;
