// Every procedure, one line a resource. Names are `<resource>.<key>`.
import type { AnyProcedure, Resource } from './procedure.ts';
import { accessKeys } from './resources/access-keys.ts';
import { account } from './resources/account.ts';
import { auditLogs, auditRetention } from './resources/audit-logs.ts';
import { banSettings, bans } from './resources/bans.ts';
import { ccTemplate } from './resources/cc-template.ts';
import { changes } from './resources/changes.ts';
import { clientIp } from './resources/client-ip.ts';
import { clusters } from './resources/clusters.ts';
import { enrollmentTokens } from './resources/enrollment-tokens.ts';
import { ipLists } from './resources/ip-lists.ts';
import { live } from './resources/live.ts';
import { nodeChannelSettings } from './resources/node-channel-settings.ts';
import { nodeGroups } from './resources/node-groups.ts';
import { nodes } from './resources/nodes.ts';
import { originAllowList } from './resources/origin-allow-list.ts';
import { overview } from './resources/overview.ts';
import { protection } from './resources/protection.ts';
import { protectionSettings } from './resources/protection-settings.ts';
import { regions } from './resources/regions.ts';
import { revisions } from './resources/revisions.ts';
import { security } from './resources/security.ts';
import { serviceAccounts } from './resources/service-accounts.ts';
import { settings } from './resources/settings.ts';
import { sites } from './resources/sites.ts';
import { system } from './resources/system.ts';
import { unknownHosts } from './resources/unknown-hosts.ts';
import type { AnyStream } from './stream.ts';

export const RESOURCES: readonly Resource[] = [
  system,
  overview,
  account,
  accessKeys,
  serviceAccounts,
  auditLogs,
  auditRetention,
  settings,
  clusters,
  nodeGroups,
  regions,
  nodes,
  enrollmentTokens,
  nodeChannelSettings,
  changes,
  revisions,
  sites,
  originAllowList,
  clientIp,
  unknownHosts,
  ipLists,
  bans,
  banSettings,
  protection,
  protectionSettings,
  ccTemplate,
  security,
];

/** All procedures by name. */
export const PROCEDURES: ReadonlyMap<string, AnyProcedure> = new Map(
  RESOURCES.flatMap((resource) => Object.values(resource).map((procedure) => [procedure.name, procedure])),
);

/** All streams by name. They are no part of /api/v1. */
export const STREAMS: ReadonlyMap<string, AnyStream> = new Map(
  Object.values(live).map((stream) => [stream.name, stream]),
);
