// Writes what requests for hosts of no site get.
import type { Knex } from 'knex';
import { readClusterSetting, writeClusterSetting } from './cluster-settings.ts';
import { UNKNOWN_HOSTS, type UnknownHosts, unknownHostsKind } from './unknown-hosts.entry.ts';

export async function writeUnknownHosts(sql: Knex, clusterId: string, settings: UnknownHosts): Promise<void> {
  const { enabled, banSeconds } = settings.scan;
  await writeClusterSetting(sql, clusterId, UNKNOWN_HOSTS, settings);
  await sql('cluster')
    .where({ id: clusterId })
    .update({
      longest_scan_ban_seconds: sql.raw('greatest(longest_scan_ban_seconds, ?)', [enabled ? banSeconds : 0]),
    });
}

/** Locks the cluster; when the site is its default site, unknown hosts get the page instead. Answers what to publish. */
export async function releaseDefaultSite(
  sql: Knex,
  clusterId: string,
  siteId: string,
): Promise<{ kind: string; id: string }[]> {
  const { settings } = (await readClusterSetting(sql, clusterId, UNKNOWN_HOSTS, { lock: true })) ?? {};
  if (settings?.defaultSiteId !== siteId) return [];
  const { unknownHost, ipAccess, scan } = settings;
  await writeUnknownHosts(sql, clusterId, {
    unknownHost: unknownHost === 'site' ? 'page' : unknownHost,
    ipAccess: ipAccess === 'site' ? 'page' : ipAccess,
    defaultSiteId: null,
    defaultCertificate: false,
    scan,
  });
  return [{ kind: unknownHostsKind.kind, id: '' }];
}
