// How the names of a cluster follow its nodes: settings, and where the engine is with them.
import type { Knex } from 'knex';
import type { DnsLine, DnsProblem } from '../../contract/resources/cluster-dns.ts';
import type { DnsMode } from '../../contract/resources/dns.ts';
import { searchPattern } from '../db/search-pattern.ts';

/** What people set. */
export interface DnsSettings {
  mode: DnsMode;
  credentialId: string | null;
  domain: string;
  ttl: number;
  lines: DnsLine[];
  lineAliases: boolean;
  allLabel: string;
}

export interface DnsBindingRow extends DnsSettings {
  clusterId: string;
  zone: string | null;
  provider: string | null;
  /** Numbers of revisions; null: none. */
  revision: number;
  target: number | null;
  applied: number | null;
  blocked: number | null;
  problem: DnsProblem | null;
  conflicts: string[];
  fence: number;
  checkedAt: Date | null;
  asked: number;
  done: number;
  updatedAt: Date;
}

export const UNMANAGED: Readonly<DnsSettings> = {
  mode: 'off',
  credentialId: null,
  domain: '',
  ttl: 600,
  lines: [],
  lineAliases: false,
  allLabel: 'all',
};

/** Those of a row, in the order of their fields. */
export const settingsOf = (row: DnsSettings): DnsSettings => ({
  mode: row.mode,
  credentialId: row.credentialId,
  domain: row.domain,
  ttl: row.ttl,
  lines: row.lines,
  lineAliases: row.lineAliases,
  allLabel: row.allLabel,
});

const COLUMNS = `b.cluster_id as "clusterId", b.mode, b.credential_id as "credentialId", b.domain, b.ttl, b.lines,
  b.line_aliases as "lineAliases", b.all_label as "allLabel", b.revision::int, b.target::int, b.applied::int, b.blocked::int,
  b.problem, b.conflicts, b.fence::int, b.checked_at as "checkedAt", b.asked::int, b.done::int, b.updated_at as "updatedAt",
  d.zone, d.provider`;
const FROM = 'from dns_binding b left join dns_credential d on d.id = b.credential_id';

export async function dnsBinding(sql: Knex, clusterId: string): Promise<DnsBindingRow | undefined> {
  const { rows } = await sql.raw<{ rows: DnsBindingRow[] }>(`select ${COLUMNS} ${FROM} where b.cluster_id = ?`, [
    clusterId,
  ]);
  return rows[0];
}

/** Locked against other decisions until the end of the transaction. */
export async function lockDnsBinding(sql: Knex, clusterId: string): Promise<DnsBindingRow | undefined> {
  const { rows } = await sql.raw<{ rows: DnsBindingRow[] }>(
    `select ${COLUMNS} ${FROM} where b.cluster_id = ? for no key update of b`,
    [clusterId],
  );
  return rows[0];
}

export async function saveDnsBinding(sql: Knex, clusterId: string, settings: DnsSettings, now: Date): Promise<void> {
  const row = {
    mode: settings.mode,
    credential_id: settings.credentialId,
    domain: settings.domain,
    ttl: settings.ttl,
    lines: JSON.stringify(settings.lines),
    line_aliases: settings.lineAliases,
    all_label: settings.allLabel,
    updated_at: now,
  };
  await sql('dns_binding')
    .insert({ cluster_id: clusterId, ...row })
    .onConflict('cluster_id')
    .merge(row);
}

/** Writers of bindings in one zone wait for each other: names of two clusters must differ. */
export async function lockDnsZone(sql: Knex, zone: string): Promise<void> {
  await sql.raw('select pg_advisory_xact_lock(1398162188, hashtext(?))', [zone]);
}

export interface NeighbourBinding {
  clusterId: string;
  allLabel: string;
  lines: DnsLine[];
}

/** Other clusters with names below the same domain in the same zone. */
export async function neighbourBindings(
  sql: Knex,
  { clusterId, zone, domain }: { clusterId: string; zone: string; domain: string },
): Promise<NeighbourBinding[]> {
  const { rows } = await sql.raw<{ rows: NeighbourBinding[] }>(
    `select b.cluster_id as "clusterId", b.all_label as "allLabel", b.lines ${FROM}
      where b.domain = :domain and b.mode <> 'off' and d.zone = :zone and b.cluster_id <> :clusterId limit 1000`,
    { clusterId, zone, domain },
  );
  return rows;
}

export interface DnsBindingListed {
  clusterId: string;
  clusterName: string;
  mode: DnsMode;
  providerId: string | null;
  zone: string | null;
  domain: string;
  revision: number;
  applied: number | null;
  blocked: number | null;
  failing: boolean;
}

/** Every cluster by name, managed or not. */
export async function dnsBindingPage(
  sql: Knex,
  search: string | undefined,
  limit: number,
  offset: number,
): Promise<{ rows: DnsBindingListed[]; total: number }> {
  const pattern = searchPattern(search);
  const [page, count] = await Promise.all([
    sql.raw<{ rows: DnsBindingListed[] }>(
      `select c.id as "clusterId", c.name as "clusterName", coalesce(b.mode, 'off') as mode,
              b.credential_id as "providerId", d.zone, coalesce(b.domain, '') as domain,
              coalesce(b.revision, 0)::int as revision, b.applied::int, b.blocked::int,
              b.failing_since is not null as failing
         from cluster c left join dns_binding b on b.cluster_id = c.id
         left join dns_credential d on d.id = b.credential_id
        where c.name like lower(:pattern) order by c.name limit :limit offset :offset`,
      { pattern, limit, offset },
    ),
    sql.raw<{ rows: { total: number }[] }>(
      'select count(*)::int as total from cluster where name like lower(:pattern)',
      { pattern },
    ),
  ]);
  return { rows: page.rows, total: count.rows[0]!.total };
}

/** Whether names of the cluster follow its nodes, or are still in a zone. */
export async function dnsInUse(sql: Knex, clusterId: string): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: { used: boolean }[] }>(
    `select exists (select from dns_binding where cluster_id = :id and mode <> 'off')
         or exists (select from dns_name where cluster_id = :id) as used`,
    { id: clusterId },
  );
  return rows[0]!.used;
}

/** Names of the lines that lead to the group, or fall back to it. */
export async function linesOfGroup(sql: Knex, clusterId: string, groupId: string): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select l->>'name' as name from dns_binding b, jsonb_array_elements(b.lines) as l
      where b.cluster_id = :clusterId and b.mode <> 'off'
        and (l->>'nodeGroupId' = :groupId or jsonb_exists(l->'backupNodeGroupIds', :groupId)) limit 5`,
    { clusterId, groupId },
  );
  return rows.map(({ name }) => name);
}

/** Clusters whose records the access writes, or has yet to remove; at most `limit` names. */
export async function clustersOfAccess(sql: Knex, credentialId: string, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select name from cluster c
      where exists (select from dns_binding b where b.cluster_id = c.id and b.credential_id = :id)
         or exists (select from dns_name n where n.cluster_id = c.id and n.credential_id = :id)
      order by name limit :limit`,
    { id: credentialId, limit },
  );
  return rows.map(({ name }) => name);
}
