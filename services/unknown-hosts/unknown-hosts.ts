import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { unknownHosts } from '../../contract/resources/unknown-hosts.ts';
import { DEFAULT_UNKNOWN_HOSTS, UNKNOWN_HOSTS, type UnknownHosts } from '../../models/clusters/unknown-hosts.entry.ts';
import { writeUnknownHosts } from '../../models/clusters/unknown-hosts-setting.ts';
import { keepEnabledSite } from '../../models/sites/site.ts';
import { type ClusterSetting, clusterSettingState, saveClusterSetting } from '../../pipeline/cluster-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Tx } from '../../runtime/write.ts';

const SETTING: ClusterSetting<UnknownHosts> = {
  setting: UNKNOWN_HOSTS,
  kind: 'unknown-hosts',
  capability: 'unknown-host-v1',
  audit: 'cluster.unknown_hosts_update',
  reason: 'unknown_hosts_updated',
  save: writeUnknownHosts,
};

/** Throws CLUSTER_NOT_FOUND. */
export async function getUnknownHosts(
  runtime: Runtime,
  { clusterId }: Input<typeof unknownHosts.get>,
): Promise<Output<typeof unknownHosts.get>> {
  const { settings, ...rest } = await clusterSettingState(runtime, SETTING, clusterId);
  return { ...settings, ...rest };
}

/** Saves and publishes the settings as a whole; equal ones change nothing. Throws the contract's errors. */
export async function setUnknownHosts(
  runtime: Runtime,
  input: Input<typeof unknownHosts.set>,
  call: Call,
): Promise<Output<typeof unknownHosts.set>> {
  const { clusterId, scan, ...given } = input;
  const wanted: UnknownHosts = {
    ...DEFAULT_UNKNOWN_HOSTS,
    ...given,
    scan: { ...DEFAULT_UNKNOWN_HOSTS.scan, ...scan },
  };
  return saveClusterSetting(runtime, call, SETTING, {
    clusterId,
    settings: wanted,
    check: (tx) => assertDefaultSite(tx, clusterId, wanted),
    present: ({ settings, ...rest }) => ({ ...settings, ...rest }),
  });
}

async function assertDefaultSite(tx: Tx, clusterId: string, settings: UnknownHosts): Promise<void> {
  const { unknownHost, ipAccess, defaultSiteId, defaultCertificate } = settings;
  const needed = unknownHost === 'site' || ipAccess === 'site' || defaultCertificate;
  if (defaultSiteId === null) {
    if (needed) fail('DEFAULT_SITE_INVALID');
    return;
  }
  if (!(await keepEnabledSite(tx.sql, clusterId, defaultSiteId))) fail('DEFAULT_SITE_INVALID');
  // Sites have no certificates yet, so no site has the one this asks for.
  if (defaultCertificate) fail('DEFAULT_SITE_CERTIFICATE_REQUIRED');
}
