import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ClusterDns, clusterDns, DnsBinding, DnsRevision } from '../../contract/resources/cluster-dns.ts';
import { clusterCount } from '../../models/clusters/cluster.ts';
import { type DnsBindingRow, dnsBinding, UNMANAGED } from '../../models/dns/binding.ts';
import { type DnsRevisionRow, dnsRevision, dnsRevisionPage } from '../../models/dns/revision.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { recordsOf } from './records.ts';
import { zoneFile } from './zone-file.ts';

type Sql = Runtime['pools']['api'];

/** Throws CLUSTER_NOT_FOUND. */
export async function getClusterDns(
  { pools }: Runtime,
  { id }: Input<typeof clusterDns.get>,
): Promise<Output<typeof clusterDns.get>> {
  const sql = pools.api;
  const row = await bindingOf(sql, id);
  const [target, held] = await Promise.all([
    dnsRevision(sql, id, row?.target ?? null),
    dnsRevision(sql, id, row?.blocked ?? null),
  ]);
  return {
    binding: presentBinding(row),
    revision: row && row.revision > 0 ? String(row.revision) : null,
    applied: row?.applied == null ? null : String(row.applied),
    records: target ? await recordsOf(sql, id, target) : [],
    blocked: held ? presentHeld(held) : null,
    problem: row?.problem ?? null,
    conflicts: row?.conflicts ?? [],
    checkedAt: row?.checkedAt?.toISOString() ?? null,
  };
}

/** Throws CLUSTER_NOT_FOUND. */
export async function exportClusterDns(
  { pools }: Runtime,
  { id }: Input<typeof clusterDns.export>,
): Promise<Output<typeof clusterDns.export>> {
  const row = await bindingOf(pools.api, id);
  const target = await dnsRevision(pools.api, id, row?.target ?? null);
  if (!target || target.binding.mode === 'off') return { origin: '', records: [], zoneFile: '' };
  const records = await recordsOf(pools.api, id, target);
  const { domain, ttl } = target.binding;
  return { origin: domain, records, zoneFile: zoneFile(domain, ttl, records) };
}

/** Throws CLUSTER_NOT_FOUND. */
export async function listDnsRevisions(
  { pools }: Runtime,
  { id, ...paging }: Input<typeof clusterDns.revisions>,
): Promise<Output<typeof clusterDns.revisions>> {
  await bindingOf(pools.api, id);
  const { limit, offset } = pageOf(paging);
  const { rows, total } = await dnsRevisionPage(pools.api, id, limit, offset);
  return { items: rows.map(presentRevision), total };
}

async function bindingOf(sql: Sql, id: string): Promise<DnsBindingRow | undefined> {
  const row = await dnsBinding(sql, id);
  if (!row && (await clusterCount(sql, id)) === 0) fail('CLUSTER_NOT_FOUND');
  return row;
}

export function presentBinding(row: DnsBindingRow | undefined): DnsBinding {
  const { credentialId, mode, domain, ttl, lines, lineAliases, allLabel } = row ?? UNMANAGED;
  return {
    mode,
    providerId: credentialId,
    zone: row?.zone ?? null,
    domain,
    ttl,
    lines,
    lineAliases,
    allLabel,
    updatedAt: row?.updatedAt.toISOString() ?? null,
  };
}

function presentHeld({ number, removed, previous, difference }: DnsRevisionRow): NonNullable<ClusterDns['blocked']> {
  return {
    revision: String(number),
    removedRecords: removed,
    previousRecords: previous,
    difference: difference.items,
    differenceTotal: difference.total,
  };
}

function presentRevision(row: DnsRevisionRow): DnsRevision {
  return {
    revision: String(row.number),
    status: row.status,
    reason: row.reason,
    reasonParams: row.reasonParams,
    actor: row.actor,
    mode: row.binding.mode,
    domain: row.binding.domain,
    addresses: new Set(row.sets.flatMap(({ values }) => values)).size,
    removedRecords: row.removed,
    previousRecords: row.previous,
    difference: row.difference.items,
    differenceTotal: row.difference.total,
    problem: row.problem,
    createdAt: row.createdAt.toISOString(),
    appliedAt: row.appliedAt?.toISOString() ?? null,
  };
}
