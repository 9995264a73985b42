// Settings of a cluster that are one object each, and which of its nodes cannot follow them.
import type { Knex } from 'knex';
import type { Capability } from '../contract/capabilities.ts';
import { type ClientIp, DEFAULT_CLIENT_IP } from './entries/client-ip.ts';
import { DEFAULT_UNKNOWN_HOSTS, type UnknownHosts, unknownHostsKind } from './entries/unknown-hosts.ts';

export interface ClusterSettings {
  name: string;
  clientIp: ClientIp;
  unknownHosts: UnknownHosts;
}

const LISTED_NODES = 100;

/** Undefined when there is no such cluster. With `lock` it stays as it is until the end of the transaction. */
export async function readClusterSettings(
  sql: Knex,
  clusterId: string,
  { lock = false } = {},
): Promise<ClusterSettings | undefined> {
  const query = sql('cluster').where({ id: clusterId }).first('name', 'client_ip', 'unknown_hosts');
  const row = await (lock ? query.forNoKeyUpdate() : query);
  if (!row) return undefined;
  return {
    name: row.name,
    clientIp: row.client_ip ?? DEFAULT_CLIENT_IP,
    unknownHosts: { ...DEFAULT_UNKNOWN_HOSTS, ...row.unknown_hosts },
  };
}

export async function writeClientIp(sql: Knex, clusterId: string, settings: ClientIp): Promise<void> {
  await sql('cluster')
    .where({ id: clusterId })
    .update({ client_ip: JSON.stringify(settings) });
}

export async function writeUnknownHosts(sql: Knex, clusterId: string, settings: UnknownHosts): Promise<void> {
  const { enabled, banSeconds } = settings.scan;
  await sql('cluster')
    .where({ id: clusterId })
    .update({
      unknown_hosts: JSON.stringify(settings),
      longest_scan_ban_seconds: sql.raw('greatest(longest_scan_ban_seconds, ?)', [enabled ? banSeconds : 0]),
    });
}

/** Locks the cluster; when the site is its default site, unknown hosts get the page instead. Answers what to publish. */
export async function releaseDefaultSite(
  sql: Knex,
  clusterId: string,
  siteId: string,
): Promise<{ kind: string; id: string }[]> {
  const settings = await readClusterSettings(sql, clusterId, { lock: true });
  if (settings?.unknownHosts.defaultSiteId !== siteId) return [];
  const { unknownHost, ipAccess, scan } = settings.unknownHosts;
  await writeUnknownHosts(sql, clusterId, {
    unknownHost: unknownHost === 'site' ? 'page' : unknownHost,
    ipAccess: ipAccess === 'site' ? 'page' : ipAccess,
    defaultSiteId: null,
    defaultCertificate: false,
    scan,
  });
  return [{ kind: unknownHostsKind.kind, id: '' }];
}

/** Active nodes of the cluster that do not report the capability, by name; at most 100. */
export async function nodesLacking(
  sql: Knex,
  clusterId: string,
  capability: Capability,
): Promise<{ id: string; name: string }[]> {
  const { rows } = await sql.raw(
    `select n.id, n.name from node n left join node_state s on s.node_id = n.id
      where n.cluster_id = ? and n.status = 'active' and not coalesce(s.features, '{}') @> array[?]::text[]
      order by n.name, n.id limit ?`,
    [clusterId, capability, LISTED_NODES],
  );
  return rows;
}

/** Active nodes of the cluster on which whoever connects may send a PROXY header, by name; at most 100. */
export async function nodesBelievingAnyPeer(sql: Knex, clusterId: string): Promise<{ id: string; name: string }[]> {
  const { rows } = await sql.raw(
    `select n.id, n.name from node n join node_state s on s.node_id = n.id
      where n.cluster_id = ? and n.status = 'active' and s.info -> 'proxyPeersUnset' = 'true'
      order by n.name, n.id limit ?`,
    [clusterId, LISTED_NODES],
  );
  return rows;
}

/** Which of the capabilities every active node of the cluster reports. */
export async function sharedCapabilities(
  sql: Knex,
  clusterId: string,
  capabilities: readonly string[],
): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { capability: string }[] }>(
    `select c.capability from unnest(?::text[]) c(capability)
      where not exists (
        select from node n left join node_state s on s.node_id = n.id
         where n.cluster_id = ? and n.status = 'active' and not coalesce(s.features, '{}') @> array[c.capability])`,
    [capabilities as never, clusterId],
  );
  return new Set(rows.map(({ capability }) => capability));
}
