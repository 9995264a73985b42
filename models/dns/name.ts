// Names that the console may write, by access. A name is registered before it is written; no other name is ever changed.
import type { Knex } from 'knex';

export interface DnsName {
  credentialId: string;
  name: string;
  /** Every value that was written, or may have been, since the zone was last read back. */
  data: string[];
  written: boolean;
}

export interface NameData {
  name: string;
  data: readonly string[];
}

export async function dnsNames(sql: Knex, clusterId: string): Promise<DnsName[]> {
  const { rows } = await sql.raw<{ rows: DnsName[] }>(
    'select credential_id as "credentialId", name, data, written from dns_name where cluster_id = ?',
    [clusterId],
  );
  return rows;
}

/**
 * Registers names with the values that are about to be written, in addition to those of before. Returns the names that are the
 * cluster's; those of another one are not.
 */
export async function registerDnsNames(
  sql: Knex,
  clusterId: string,
  credentialId: string,
  names: readonly NameData[],
): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `insert into dns_name as n (credential_id, name, cluster_id, data)
     select :credentialId, g.name, :clusterId, g.data
       from jsonb_to_recordset(:names::jsonb) as g(name text, data text[]) order by g.name
     on conflict (credential_id, name) do update
       set data = (select array_agg(distinct d) from unnest(n.data || excluded.data) as d)
     where n.cluster_id = excluded.cluster_id
     returning name`,
    { clusterId, credentialId, names: JSON.stringify(names) },
  );
  return new Set(rows.map(({ name }) => name));
}

/** A reading has shown that the names have exactly these values. */
export async function confirmDnsNames(
  sql: Knex,
  clusterId: string,
  credentialId: string,
  names: readonly NameData[],
): Promise<void> {
  if (names.length === 0) return;
  await sql.raw(
    `update dns_name n set data = g.data, written = true
       from jsonb_to_recordset(:names::jsonb) as g(name text, data text[])
      where n.credential_id = :credentialId and n.cluster_id = :clusterId and n.name = g.name
        and (n.data is distinct from g.data or not n.written)`,
    { clusterId, credentialId, names: JSON.stringify(names) },
  );
}

/** A reading has shown that nothing of the console is left at the names. */
export async function releaseDnsNames(
  sql: Knex,
  clusterId: string,
  credentialId: string,
  names: readonly string[],
): Promise<void> {
  if (names.length === 0) return;
  await sql.raw('delete from dns_name where credential_id = ? and cluster_id = ? and name = any(?::text[])', [
    credentialId,
    clusterId,
    names,
  ] as never);
}

export async function isDnsNameWritten(sql: Knex, clusterId: string, name: string): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: unknown[] }>(
    'select 1 from dns_name where cluster_id = ? and name = ? and written limit 1',
    [clusterId, name],
  );
  return rows.length > 0;
}
