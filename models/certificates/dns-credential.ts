// Credentials with which TXT records of a zone are written. Their secrets are sealed, and opened for a change alone.
import type { Knex } from 'knex';
import type { SecretPlace } from '../../runtime/sealer.ts';
import { searchPattern } from '../db/search-pattern.ts';

/** What is no secret of a credential. */
export interface DnsAccess {
  /** By key of the provider's field (services/dns/adapters). */
  fields: Record<string, string>;
  /** Servers that are queried for validation records; empty: those in the NS records of the zone. */
  nameservers: string[];
}

export interface DnsCredentialRow {
  id: string;
  name: string;
  /** Key of an adapter. */
  provider: string;
  zone: string;
  settings: DnsAccess;
  /** Sealed: the value of the one secret field, or JSON of several. */
  secret: string;
  lastError: string | null;
  certificateCount: number;
  /** Clusters whose records it writes. */
  clusterCount: number;
  createdAt: Date;
  updatedAt: Date;
}

export type NewDnsCredential = Pick<DnsCredentialRow, 'id' | 'name' | 'provider' | 'zone' | 'settings' | 'secret'>;

const COLUMNS = `d.id, d.name, d.provider, d.zone, d.settings, d.secret, d.last_error as "lastError",
  d.created_at as "createdAt", d.updated_at as "updatedAt",
  (select count(*)::int from certificate c where c.request->>'dnsCredentialId' = d.id and not c.rehearsal) as "certificateCount",
  (select count(*)::int from dns_binding b where b.credential_id = d.id) as "clusterCount"`;

export function dnsSecretPlace(id: string): SecretPlace {
  return { table: 'dns_credential', column: 'secret', row: id };
}

export async function dnsCredentialPage(
  sql: Knex,
  search: string | undefined,
  limit: number,
  offset: number,
): Promise<{ rows: DnsCredentialRow[]; total: number }> {
  const bindings = { pattern: searchPattern(search?.toLowerCase()), limit, offset };
  const where = 'where lower(d.name) like :pattern or d.zone like :pattern';
  const [page, count] = await Promise.all([
    sql.raw<{ rows: DnsCredentialRow[] }>(
      `select ${COLUMNS} from dns_credential d ${where} order by lower(d.name), d.id limit :limit offset :offset`,
      bindings,
    ),
    sql.raw<{ rows: { total: number }[] }>(`select count(*)::int as total from dns_credential d ${where}`, bindings),
  ]);
  return { rows: page.rows, total: count.rows[0]!.total };
}

export async function dnsCredentialById(sql: Knex, id: string): Promise<DnsCredentialRow | undefined> {
  const { rows } = await sql.raw<{ rows: DnsCredentialRow[] }>(
    `select ${COLUMNS} from dns_credential d where d.id = ?`,
    [id],
  );
  return rows[0];
}

/** Locks a credential for a change of it; who names it in a request meanwhile waits. */
export async function lockDnsCredential(sql: Knex, id: string): Promise<DnsCredentialRow | undefined> {
  const { rows } = await sql.raw<{ rows: DnsCredentialRow[] }>(
    `select ${COLUMNS} from dns_credential d where d.id = ? for update of d`,
    [id],
  );
  return rows[0];
}

/** Whether there is one, which stays until the end of the transaction. */
export async function keepDnsCredential(sql: Knex, id: string): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: unknown[] }>('select id from dns_credential where id = ? for share', [id]);
  return rows.length > 0;
}

export async function insertDnsCredential(sql: Knex, given: NewDnsCredential, now: Date): Promise<void> {
  await sql('dns_credential').insert({
    ...given,
    settings: JSON.stringify(given.settings),
    created_at: now,
    updated_at: now,
  });
}

/** Replaces name, access and secret; what its last use failed with is forgotten. */
export async function updateDnsCredential(
  sql: Knex,
  { id, name, settings, secret }: Pick<DnsCredentialRow, 'id' | 'name' | 'settings' | 'secret'>,
  updatedAt: Date,
): Promise<void> {
  await sql('dns_credential')
    .where({ id })
    .update({ name, settings: JSON.stringify(settings), secret, last_error: null, updated_at: updatedAt });
}

export async function deleteDnsCredential(sql: Knex, id: string): Promise<void> {
  await sql('dns_credential').where({ id }).delete();
}

/** Keeps how its last use went. */
export async function setDnsCredentialError(sql: Knex, id: string, lastError: string | null): Promise<void> {
  await sql.raw('update dns_credential set last_error = ? where id = ? and last_error is distinct from ?', [
    lastError,
    id,
    lastError,
  ]);
}

/** Certificates that are asked for with it, by name; at most `limit`. */
export async function certificatesOfCredential(sql: Knex, id: string, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    "select name from certificate where request->>'dnsCredentialId' = ? and not rehearsal order by name, id limit ?",
    [id, limit],
  );
  return rows.map(({ name }) => name);
}

/** The credential whose zone is the nearest above all of the names; undefined where there is none. */
export async function dnsCredentialFor(sql: Knex, names: readonly string[]): Promise<DnsCredentialRow | undefined> {
  const { rows } = await sql.raw<{ rows: DnsCredentialRow[] }>(
    `select ${COLUMNS} from dns_credential d
      where not exists (select from unnest(?::text[]) as n(name)
        where n.name <> d.zone and right(n.name, length(d.zone) + 1) <> '.' || d.zone)
      order by length(d.zone) desc, d.last_error is not null, d.id limit 1`,
    [names as never],
  );
  return rows[0];
}
