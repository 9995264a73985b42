import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { unknownHosts } from '../../contract/resources/unknown-hosts.ts';
import type { Call } from '../../mixins/call.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { type Tx, write } from '../../mixins/write.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { nodesLacking, readClusterSettings, writeUnknownHosts } from '../../models/cluster-settings.ts';
import { DEFAULT_UNKNOWN_HOSTS, type UnknownHosts } from '../../models/entries/unknown-hosts.ts';
import { publish } from '../../models/publish.ts';
import { keepEnabledSite } from '../../models/site.ts';

/** Throws CLUSTER_NOT_FOUND. */
export async function getUnknownHosts(
  { pools }: Runtime,
  { clusterId }: Input<typeof unknownHosts.get>,
): Promise<Output<typeof unknownHosts.get>> {
  const { unknownHosts: settings } = (await readClusterSettings(pools.api, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
  return { ...settings, unsupportedNodes: await nodesLacking(pools.api, clusterId, 'unknown-host-v1') };
}

/** Saves and publishes the settings as a whole; equal ones change nothing. Throws the contract's errors. */
export async function setUnknownHosts(
  runtime: Runtime,
  input: Input<typeof unknownHosts.set>,
  call: Call,
): Promise<Output<typeof unknownHosts.set>> {
  const { clusterId, ...given } = input;
  const settings: UnknownHosts = { ...DEFAULT_UNKNOWN_HOSTS, ...given };
  return write(runtime, call, { clusterId }, async (tx) => {
    const before = (await readClusterSettings(tx.sql, clusterId, { lock: true })) ?? fail('CLUSTER_NOT_FOUND');
    await assertDefaultSite(tx, clusterId, settings);
    const unsupportedNodes = await nodesLacking(tx.sql, clusterId, 'unknown-host-v1');
    if (isDeepStrictEqual(before.unknownHosts, settings)) return { ...settings, unsupportedNodes, revision: null };
    await writeUnknownHosts(tx.sql, clusterId, settings);
    await recordAudit(
      tx,
      'cluster.unknown_hosts_update',
      { type: 'cluster', id: clusterId, name: before.name },
      { before: before.unknownHosts, after: settings },
    );
    const revision = await publish(tx, {
      clusterId,
      entries: [{ kind: 'unknown-hosts', id: '' }],
      reason: 'unknown_hosts_updated',
    });
    return { ...settings, unsupportedNodes, revision };
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
