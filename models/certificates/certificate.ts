// Certificates, without rehearsals, which acme-certificate.ts alone sees. A renewal replaces the material in its row: what names the certificate goes on to name it. Keys are
// sealed, and opened for nodes alone.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import {
  CERTIFICATE_ENDING_DAYS,
  type CERTIFICATE_SORT,
  type CertificateCondition,
  type CertificateSource,
  type CertificateStatus,
  type KeyType,
} from '../../contract/resources/certificates.ts';
import { MAX_ATTENTION, MAX_NAMED } from '../../contract/resources/overview.ts';
import type { Sealer } from '../../runtime/sealer.ts';
import type { Tx } from '../../runtime/write.ts';
import { subjectIds } from '../alerts/alert.ts';
import { MAX_ENTRIES } from '../config/publish.ts';
import { requestPublication } from '../config/publish-requests.ts';
import { orderBy, type Sort } from '../db/list-order.ts';
import { searchPattern } from '../db/search-pattern.ts';
import { certificateRef, SITE_HTTPS_KIND } from '../sites/site-https.entry.ts';
import type { CertificateMaterial } from './certificate-check.ts';

export interface CertificateRow {
  id: string;
  name: string;
  names: string[];
  /** Null for uploads. */
  requestedNames: string[] | null;
  source: CertificateSource;
  status: CertificateStatus;
  /** Hexadecimal; this and what follows down to notAfter is null together, while it was never issued. */
  fingerprint: string | null;
  issuer: string | null;
  keyType: KeyType | null;
  notBefore: Date | null;
  notAfter: Date | null;
  autoRenew: boolean;
  renewAt: Date | null;
  lastError: string | null;
  bindSiteId: string | null;
  /** How an authority is shown that names are ours; null for uploads. */
  challenge: 'http01' | 'dns01' | null;
  siteCount: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface CertificateFilter {
  search?: string | undefined;
  source?: CertificateSource | undefined;
  status?: CertificateStatus | undefined;
  condition?: CertificateCondition | undefined;
  bindSiteId?: string | undefined;
}

/** Ends soon, or has ended. */
const ENDING = `c.not_after < now() + make_interval(days => ${CERTIFICATE_ENDING_DAYS})`;
const CONDITIONS: Readonly<Record<CertificateCondition, string>> = { ending: ENDING, failed: `c.status = 'error'` };

type CertificateSort = (typeof CERTIFICATE_SORT)[number];

const COLUMNS = `
  c.id, c.name, c.names, c.requested_names as "requestedNames", c.source, c.status,
  encode(c.fingerprint, 'hex') as fingerprint, c.issuer, c.key_type as "keyType", c.not_before as "notBefore",
  c.not_after as "notAfter", c.auto_renew as "autoRenew", c.renew_at as "renewAt", c.last_error as "lastError",
  c.bind_site_id as "bindSiteId", c.request->>'challenge' as challenge, c.created_at as "createdAt", c.updated_at as "updatedAt",
  (select count(*)::int from site_certificate u where u.certificate_id = c.id) as "siteCount"`;

// Ids are in the order of creation.
const SORT_COLUMNS: Readonly<Record<CertificateSort, string>> = {
  name: 'lower(c.name)',
  notAfter: 'c.not_after',
  createdAt: 'c.id',
};

const place = (id: string) => ({ table: 'certificate', column: 'private_key', row: id });

function conditions({ search, source, status, condition, bindSiteId }: CertificateFilter): {
  where: string;
  bindings: Record<string, string>;
} {
  const clauses = ['not c.rehearsal'];
  const bindings: Record<string, string> = {};
  const text = search?.trim().toLowerCase();
  if (text) {
    clauses.push('c.search_text like :pattern');
    bindings.pattern = searchPattern(text);
  }
  if (source !== undefined) {
    clauses.push('c.source = :source');
    bindings.source = source;
  }
  if (status !== undefined) {
    clauses.push('c.status = :status');
    bindings.status = status;
  }
  if (condition !== undefined) clauses.push(CONDITIONS[condition]);
  if (bindSiteId !== undefined) {
    clauses.push('c.bind_site_id = :bindSiteId');
    bindings.bindSiteId = bindSiteId;
  }
  return { where: `where ${clauses.join(' and ')}`, bindings };
}

/** Certificates, newest first unless sorted otherwise. The page is cut before anything is joined: its cost follows the page. */
export async function certificatePage(
  sql: Knex,
  filter: CertificateFilter & { sort?: Sort<CertificateSort> | undefined },
  limit: number,
  offset: number,
): Promise<CertificateRow[]> {
  const { where, bindings } = conditions(filter);
  const order = orderBy(filter.sort ?? '-createdAt', SORT_COLUMNS, 'c.id');
  // A scan in the order of the list would read every certificate for a rare match.
  const rare = filter.search?.trim() || filter.condition !== undefined || filter.bindSiteId !== undefined;
  const source = rare
    ? `(with hit as materialized (select id, name, not_after from certificate c ${where})
        select f.* from (select id from hit c ${order} limit :limit offset :offset) h join certificate f using (id))`
    : `(select * from certificate c ${where} ${order} limit :limit offset :offset)`;
  const { rows } = await sql.raw(`select ${COLUMNS} from ${source} c ${order}`, { ...bindings, limit, offset });
  return rows;
}

export async function certificateCount(sql: Knex, filter: CertificateFilter): Promise<number> {
  const { where, bindings } = conditions(filter);
  const { rows } = await sql.raw(`select count(*)::int as total from certificate c ${where}`, bindings);
  return rows[0].total;
}

export async function certificateById(sql: Knex, id: string): Promise<CertificateRow | undefined> {
  const { rows } = await sql.raw(`select ${COLUMNS} from certificate c where c.id = ? and not c.rehearsal`, [id]);
  return rows[0];
}

/** Locks a certificate for a change of it; who names it in settings meanwhile waits. */
export async function lockCertificate(sql: Knex, id: string): Promise<CertificateRow | undefined> {
  const { rows } = await sql.raw(
    `select ${COLUMNS} from certificate c where c.id = ? and not c.rehearsal for no key update of c`,
    [id],
  );
  return rows[0];
}

/** Those of the ids that there are, by id. */
export async function certificatesById(sql: Knex, ids: readonly string[]): Promise<Map<string, CertificateRow>> {
  const { rows } = await sql.raw<{ rows: CertificateRow[] }>(
    `select ${COLUMNS} from certificate c where c.id = any(?) and not c.rehearsal`,
    [ids as never],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** Those of the ids that there are, which stay as they are until the end of the transaction; by id. */
export async function keepCertificates(sql: Knex, ids: readonly string[]): Promise<Map<string, CertificateRow>> {
  const { rows } = await sql.raw<{ rows: CertificateRow[] }>(
    `select ${COLUMNS} from certificate c where c.id = any(?) and not c.rehearsal order by c.id for share of c`,
    [ids as never],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** DER of a certificate's chain, leaf first; empty while it was never issued. */
export async function chainOf(sql: Knex, id: string): Promise<Buffer[]> {
  const row = await sql('certificate').where({ id }).first('chain');
  return row?.chain ?? [];
}

/** Adds an upload; answers its id. */
export async function insertUpload(
  sql: Knex,
  sealer: Sealer,
  { name, material, now }: { name: string; material: CertificateMaterial; now: Date },
): Promise<string> {
  const { rows } = await sql.raw('select uuidv7()::text as id');
  const id: string = rows[0].id;
  await sql('certificate').insert({
    id,
    name,
    source: 'upload',
    status: 'ready',
    created_at: now,
    updated_at: now,
    ...materialColumns(sealer, id, material),
  });
  return id;
}

/**
 * Gives a certificate that this transaction has locked other material, which its last issue succeeded with, and has it
 * published wherever nodes serve the one before: at once, whatever a canary tries. Answers the clusters for
 * publishRequested (pipeline/publish-requested.ts), to be called after the commit.
 */
export async function replaceMaterial(
  tx: Tx,
  sealer: Sealer,
  { id, name, updatedAt }: Pick<CertificateRow, 'id' | 'name' | 'updatedAt'>,
  material: CertificateMaterial,
): Promise<string[]> {
  await tx
    .sql('certificate')
    .where({ id })
    .update({
      ...materialColumns(sealer, id, material),
      status: 'ready',
      last_error: null,
      updated_at: new Date(Math.max(tx.now.getTime(), updatedAt.getTime() + 1)),
    });
  const { rows } = await tx.sql.raw<{ rows: { cluster_id: string; sites: string[] }[] }>(
    `select cluster_id, array_agg(distinct resource_id) as sites from config_entry
      where to_revision is null and kind = 'site-https' and refs @> array[?] group by cluster_id`,
    [certificateRef(id)],
  );
  const clusters: string[] = [];
  for (const { cluster_id: clusterId, sites } of rows) {
    for (let at = 0; at < sites.length; at += MAX_ENTRIES) {
      const entries = sites
        .slice(at, at + MAX_ENTRIES)
        .map((site) => ({ kind: SITE_HTTPS_KIND, id: site, renews: true }));
      const params = { certificate: name, certificateId: id };
      await requestPublication(tx, { entries, reason: 'certificate_updated', params }, [clusterId]);
    }
    clusters.push(clusterId);
  }
  return clusters;
}

/** Has a certificate, which is kept, issued anew with more names, as soon as somebody gets to it. */
export async function askForNames(sql: Knex, id: string, names: readonly string[], now: Date): Promise<void> {
  await sql.raw(
    `update certificate set requested_names = requested_names || ?::text[], renew_at = ?,
         updated_at = greatest(?, updated_at + interval '1 millisecond') where id = ?`,
    [names as never, now, now, id],
  );
}

/** The certificate that was asked for a site and that it has not got yet. */
export async function certificateForSite(sql: Knex, siteId: string): Promise<CertificateRow | undefined> {
  const { rows } = await sql.raw(`select ${COLUMNS} from certificate c where c.bind_site_id = ?`, [siteId]);
  return rows[0];
}

export async function deleteCertificate(sql: Knex, id: string): Promise<void> {
  await sql('certificate').where({ id }).delete();
}

/** Sites that a certificate is a certificate of, by their settings or by what nodes run, by name; at most `limit`. */
export async function sitesOfCertificate(
  sql: Knex,
  id: string,
  limit: number,
): Promise<{ id: string; name: string }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>(
    `select s.id, s.name from site s where s.id in (
       select site_id from site_certificate where certificate_id = ?
       union
       select resource_id from config_entry where to_revision is null and kind = 'site-https' and refs @> array[?])
     order by s.name, s.id limit ?`,
    [id, certificateRef(id), limit],
  );
  return rows;
}

export interface EndingCertificates {
  clusterId: string;
  clusterName: string;
  /** Sites, enabled ones alone. */
  count: number;
  /** When the first ends. */
  at: Date;
  named: { id: string; name: string }[];
  /** Ids of their certificates, as `subjectIds` reads them. */
  subjects: string[];
}

/**
 * Sites by cluster whose certificate ends soon and that nobody renews: uploads 14 days before their end, others where
 * renewals failed until a quarter of their time was left. Those of most sites first.
 */
export async function endingCertificates(sql: Knex, clusterId: string | null): Promise<EndingCertificates[]> {
  const { rows } = await sql.raw<{ rows: EndingCertificates[] }>(
    `with ending as materialized (
       select s.id, s.name, s.cluster_id, min(c.not_after) as at, array_agg(c.id) as certificates from certificate c
         join site_certificate u on u.certificate_id = c.id join site s on s.id = u.site_id and s.enabled
        where ${ENDING} and (?::text is null or s.cluster_id = ?)
          and (not c.auto_renew or c.not_after <= now()
            or (c.status = 'error' and c.not_after - now() < (c.not_after - c.not_before) / 4))
        group by s.id)
     select e.cluster_id as "clusterId", c.name as "clusterName", count(*)::int as count, min(e.at) as at,
         (select jsonb_agg(jsonb_build_object('id', f.id, 'name', f.name) order by f.at, f.id) from (
            select id, name, at from ending o where o.cluster_id = e.cluster_id order by at, id limit ${MAX_NAMED}) f) as named,
         (select ${subjectIds('k.id')} from ending o cross join lateral unnest(o.certificates) as k(id)
           where o.cluster_id = e.cluster_id) as subjects
       from ending e join cluster c on c.id = e.cluster_id
      group by e.cluster_id, c.name order by count(*) desc, c.name limit ${MAX_ATTENTION}`,
    [clusterId, clusterId],
  );
  return rows;
}

/** What nodes of a cluster may have: those asked for that an entry of it names and that are still what is asked for. */
export interface OpenedCertificate {
  id: string;
  fingerprint: Buffer;
  chain: Buffer[];
  /** A secret: PKCS #8 in DER. */
  privateKey: Buffer;
}

/** Certificates with their keys opened: for nodes of the cluster and nobody else. */
export async function openCertificates(
  pool: Pick<Pool, 'query'>,
  sealer: Sealer,
  clusterId: string,
  asked: readonly { certificateId: string; fingerprint: Uint8Array }[],
): Promise<OpenedCertificate[]> {
  const { rows } = await pool.query<Omit<OpenedCertificate, 'privateKey'> & { private_key: string }>({
    name: 'open-certificates',
    text: `select c.id, c.fingerprint, c.chain, c.private_key
      from unnest($2::text[], $3::bytea[]) as asked(id, fingerprint)
      join certificate c on c.id = asked.id and c.fingerprint = asked.fingerprint
     where exists (select from config_entry e where e.cluster_id = $1 and e.to_revision is null
       and e.kind = 'site-https' and e.refs @> array['certificate:' || c.id])`,
    values: [
      clusterId,
      asked.map(({ certificateId }) => certificateId),
      asked.map(({ fingerprint }) => Buffer.from(fingerprint)),
    ],
  });
  return rows.map(({ private_key, ...row }) => ({ ...row, privateKey: sealer.open(private_key, place(row.id)) }));
}

function materialColumns(sealer: Sealer, id: string, material: CertificateMaterial): Record<string, unknown> {
  const { chain, privateKey, fingerprint, names, issuer, keyType, notBefore, notAfter } = material;
  return {
    names,
    fingerprint,
    chain,
    private_key: sealer.seal(privateKey, place(id)),
    issuer,
    key_type: keyType,
    not_before: notBefore,
    not_after: notAfter,
  };
}
