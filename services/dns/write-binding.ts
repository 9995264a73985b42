import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { clusterDns } from '../../contract/resources/cluster-dns.ts';
import { differenceOf, isBlocked, removalOf } from '../../mixins/dns/protection.ts';
import { publishDns } from '../../mixins/dns/publish-dns.ts';
import { addressSets } from '../../mixins/dns/targets.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { dnsCredentialById } from '../../models/certificates/dns-credential.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { dnsBinding, lockDnsBinding, saveDnsBinding, settingsOf, UNMANAGED } from '../../models/dns/binding.ts';
import { dnsNodes } from '../../models/dns/facts.ts';
import { dnsNames } from '../../models/dns/name.ts';
import { readDnsProtection } from '../../models/dns/protection-setting.ts';
import { dnsRevision } from '../../models/dns/revision.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { adapterKind } from './adapters/catalog.ts';
import { checkedBinding } from './given-binding.ts';
import { presentBinding } from './read-binding.ts';
import { recordsOf } from './records.ts';

type Published = Output<typeof clusterDns.set>;

/** Throws what is wrong with the settings, CLUSTER_NOT_FOUND and UPDATED_AT_MISMATCH. */
export async function setClusterDns(
  runtime: Runtime,
  { id, expectedUpdatedAt, ...given }: Input<typeof clusterDns.set>,
  call: Call,
): Promise<Published> {
  return write(runtime, call, {}, async (tx) => {
    const cluster = (await Cluster.locked(tx.sql, id)) ?? fail('CLUSTER_NOT_FOUND');
    const before = await lockDnsBinding(tx.sql, id);
    assertUpdatedAt(expectedUpdatedAt, before?.updatedAt ?? null);
    const settings = await checkedBinding(tx, id, given, before ?? UNMANAGED);
    await saveDnsBinding(tx.sql, id, settings, nextUpdatedAt(before?.updatedAt ?? null, tx.now));
    const revision = await publishDns(tx, id, { reason: 'manual' });
    const { mode, domain } = settings;
    const said = { mode, domain, lines: settings.lines.length, revision };
    await recordAudit(tx, 'cluster.dns_update', { type: 'cluster', id, name: cluster.name }, said);
    return published(tx, id, revision);
  });
}

/** Throws CLUSTER_NOT_FOUND, DNS_REVISION_NOT_FOUND and what is wrong with the settings by now. */
export async function rollbackClusterDns(
  runtime: Runtime,
  { id, revision }: Input<typeof clusterDns.rollback>,
  call: Call,
): Promise<Published> {
  return write(runtime, call, {}, async (tx) => {
    const cluster = (await Cluster.locked(tx.sql, id)) ?? fail('CLUSTER_NOT_FOUND');
    const before = await lockDnsBinding(tx.sql, id);
    const wanted = (await dnsRevision(tx.sql, id, numberOf(revision))) ?? fail('DNS_REVISION_NOT_FOUND');
    const { credentialId: providerId, allLabel: _, ...kept } = wanted.binding;
    const settings = await checkedBinding(tx, id, { ...kept, providerId }, before ?? UNMANAGED);
    await saveDnsBinding(tx.sql, id, settings, nextUpdatedAt(before?.updatedAt ?? null, tx.now));
    const made = await publishDns(tx, id, { reason: 'rollback' });
    await recordAudit(tx, 'cluster.dns_rollback', { type: 'cluster', id, name: cluster.name }, { to: revision });
    return published(tx, id, made);
  });
}

/** Throws CLUSTER_NOT_FOUND and DNS_NOT_BLOCKED. */
export async function forceClusterDns(
  runtime: Runtime,
  { id, revision }: Input<typeof clusterDns.force>,
  call: Call,
): Promise<Published> {
  return write(runtime, call, {}, async (tx) => {
    const cluster = (await Cluster.locked(tx.sql, id)) ?? fail('CLUSTER_NOT_FOUND');
    const row = await lockDnsBinding(tx.sql, id);
    if (row?.blocked == null || row.blocked !== numberOf(revision)) fail('DNS_NOT_BLOCKED');
    const made = await publishDns(tx, id, { reason: 'force' });
    await recordAudit(tx, 'cluster.dns_force', { type: 'cluster', id, name: cluster.name }, { held: revision });
    return published(tx, id, made);
  });
}

/** Throws CLUSTER_NOT_FOUND and what is wrong with the settings. */
export async function previewClusterDns(
  runtime: Runtime,
  { id, ...given }: Input<typeof clusterDns.preview>,
  call: Call,
): Promise<Output<typeof clusterDns.preview>> {
  // The checks lock what they look at, for as long as they look.
  const binding = await write(runtime, { ...call, idempotency: null }, {}, async (tx) => {
    if (!(await Cluster.byId(tx.sql, id))) fail('CLUSTER_NOT_FOUND');
    return checkedBinding(tx, id, given, (await dnsBinding(tx.sql, id)) ?? UNMANAGED);
  });
  const sql = runtime.pools.api;
  const row = await dnsBinding(sql, id);
  const target = (await dnsRevision(sql, id, row?.target ?? null)) ?? null;
  const sets = addressSets(settingsOf(binding), await dnsNodes(sql, [id]));
  const difference = differenceOf(target?.sets ?? [], sets);
  const minTtl = await minTtlOf(sql, binding.credentialId);
  const ttl = Math.max(binding.ttl, minTtl);
  const records = await recordsOf(sql, id, { binding, sets, ttl });
  return {
    records,
    difference: difference.items,
    differenceTotal: difference.total,
    blocked: isBlocked(removalOf(target, { binding, sets }), (await readDnsProtection(sql)).massRemovalRatio),
    replaced: await replacedNames(sql, id, records),
    ttl,
  };
}

/** Names of the cluster that change between addresses and CNAME. */
async function replacedNames(
  sql: Runtime['pools']['api'],
  id: string,
  records: readonly { name: string; type: string }[],
): Promise<string[]> {
  const before = new Map(
    (await dnsNames(sql, id)).map(({ name, data }) => [name, data.some((value) => !isAddress(value))]),
  );
  const now = new Map(records.map(({ name, type }) => [name, type === 'CNAME']));
  return [...now].filter(([name, isCname]) => (before.get(name) ?? isCname) !== isCname).map(([name]) => name);
}

const isAddress = (value: string): boolean => /^[0-9.]+$|:/.test(value);

async function minTtlOf(sql: Tx['sql'] | Runtime['pools']['api'], credentialId: string | null): Promise<number> {
  const row = credentialId === null ? undefined : await dnsCredentialById(sql, credentialId);
  return (row && adapterKind(row.provider)?.capabilities.minTtl) ?? 0;
}

async function published({ sql }: Tx, id: string, revision: number | null): Promise<Published> {
  return { revision: revision === null ? null : String(revision), binding: presentBinding(await dnsBinding(sql, id)) };
}

/** Larger ones than any that there can be are none. */
function numberOf(text: string): number {
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}
