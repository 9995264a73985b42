import type { Input, Output } from '../../contract/procedure.ts';
import { MAX_INCIDENT_SITES, type security } from '../../contract/resources/security.ts';
import { LEVELS } from '../../contract/scalars/challenge.ts';
import { readProtectionSettings } from '../../models/security/protection-setting.ts';
import { heaviest, incidentSites, newestAutomaticBans } from '../../models/security/security-view.ts';
import { countSitesUnderAttack } from '../../models/security/site-protection.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** What is going on now, on all clusters or on one. */
export async function listIncidents(
  { pools }: Runtime,
  input: Input<typeof security.incidents>,
): Promise<Output<typeof security.incidents>> {
  const sql = pools.api;
  const clusterId = input.clusterId ?? null;
  const [platform, sitesUnderAttack, sites, bans, topIps] = await Promise.all([
    readProtectionSettings(sql),
    countSitesUnderAttack(sql, clusterId),
    incidentSites(sql, clusterId, MAX_INCIDENT_SITES),
    newestAutomaticBans(sql, clusterId),
    heaviest(sql, 'address', { siteId: null, clusterId, hours: 1 }),
  ]);
  return {
    underAttack: platform.underAttack,
    sitesUnderAttack,
    sites: sites.map(({ total: _total, level, nodes, since, ...site }) => ({
      ...site,
      level: LEVELS[level]!,
      nodes: nodes.map((node) => ({ ...node, level: LEVELS[node.level]! })),
      since: since.toISOString(),
    })),
    total: sites[0]?.total ?? 0,
    bans: bans.map(({ nodeId, nodeName, createdAt, expiresAt, ...ban }) => ({
      ...ban,
      node: nodeId === null ? null : { id: nodeId, name: nodeName! },
      createdAt: createdAt.toISOString(),
      expiresAt: expiresAt.toISOString(),
    })),
    topIps,
  };
}
