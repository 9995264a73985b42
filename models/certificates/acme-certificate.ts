// What the orders of certificates read and write of certificates.
import type { Knex } from 'knex';
import type { DomainForm } from '../../contract/scalars/domain.ts';
import { named } from '../db/named-statement.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';
import type { CertificateRequest } from './acme-order.ts';

/** A certificate that an authority is asked for. */
export interface OrderedCertificate {
  id: string;
  name: string;
  requestedNames: string[];
  request: CertificateRequest;
  autoRenew: boolean;
  status: 'pending' | 'issuing' | 'ready' | 'error';
  /** DER of what it is now; null before the first. */
  leaf: Buffer | null;
  notBefore: Date | null;
  notAfter: Date | null;
  bindSiteId: string | null;
  renewAt: Date | null;
  /** What is issued for it is thrown away. */
  rehearsal: boolean;
}

const COLUMNS = `c.id, c.name, c.requested_names as "requestedNames", c.request, c.auto_renew as "autoRenew", c.status,
  c.chain[1] as leaf, c.not_before as "notBefore", c.not_after as "notAfter", c.bind_site_id as "bindSiteId",
  c.renew_at as "renewAt", c.rehearsal`;

export async function orderedCertificate(sql: Knex, id: string): Promise<OrderedCertificate | undefined> {
  const text = `select ${COLUMNS} from certificate c where c.id = $1 and c.source = 'acme'`;
  return (await named<OrderedCertificate>(sql, 'ordered-certificate', text, [id]))[0];
}

/** As {@link orderedCertificate}, locked until the end of the transaction. */
export async function lockOrdered(sql: Knex, id: string): Promise<OrderedCertificate | undefined> {
  const text = `select ${COLUMNS} from certificate c where c.id = ? and c.source = 'acme' for update`;
  return (await sql.raw<{ rows: OrderedCertificate[] }>(text, [id])).rows[0];
}

/** Domains of the sites that use the certificate, enabled or not. */
export async function domainsBehind(sql: Knex, certificateId: string): Promise<{ form: DomainForm; name: string }[]> {
  const { rows } = await sql.raw<{ rows: { form: DomainForm; name: string }[] }>(
    `select d.form, d.name from site_certificate u join site_domain d on d.site_id = u.site_id
      where u.certificate_id = ?`,
    [certificateId],
  );
  return rows;
}

/** Asks for other names from now on, unless others were asked for meanwhile. */
export async function changeRequestedNames(
  sql: Knex,
  id: string,
  from: readonly string[],
  to: readonly string[],
): Promise<void> {
  await sql.raw('update certificate set requested_names = ? where id = ? and requested_names = ?', [
    to,
    id,
    from,
  ] as never);
}

/** Asks with another account from now on. */
export async function changeAccount(sql: Knex, id: string, accountId: string): Promise<void> {
  await sql.raw(`update certificate set request = jsonb_set(request, '{accountId}', to_jsonb(?::text)) where id = ?`, [
    accountId,
    id,
  ]);
}

/** Its order brought what was asked for. Names that were wanted meanwhile are asked for at once. */
export async function setIssued(
  sql: Knex,
  id: string,
  { names, renewAt, lastError = null }: { names: readonly string[]; renewAt: Date | null; lastError?: string | null },
): Promise<void> {
  await sql.raw(
    `update certificate set status = 'ready', last_error = ?, bind_site_id = null,
        renew_at = case when requested_names <@ ?::text[] then ?::timestamptz else now() end,
        updated_at = greatest(now(), updated_at + interval '1 ms') where id = ?`,
    [lastError, names, renewAt, id] as never,
  );
}

/** Its order failed with the code; the next one begins then (null: when somebody asks). */
export async function setFailed(
  sql: Knex,
  id: string,
  { lastError, renewAt }: { lastError: string; renewAt: Date | null },
): Promise<void> {
  await sql.raw(
    `update certificate set status = 'error', last_error = ?, renew_at = ?,
        updated_at = greatest(now(), updated_at + interval '1 ms') where id = ?`,
    [lastError, renewAt, id] as never,
  );
}

/** Has it renewed then, unless it is another one by now, is being issued, or is to be renewed at once anyway. */
export async function setRenewal(sql: Knex, id: string, fingerprint: Buffer, renewAt: Date): Promise<void> {
  await sql.raw(
    `update certificate set renew_at = ?, updated_at = greatest(now(), updated_at + interval '1 ms')
      where id = ? and fingerprint = ? and status = 'ready' and auto_renew and renew_at > now()`,
    [renewAt, id, fingerprint],
  );
}

export interface NewRequest {
  name: string;
  names: readonly string[];
  request: CertificateRequest;
  autoRenew: boolean;
  bindSiteId: string | null;
}

/** Inserts a certificate that is due now; answers its id. */
export async function insertRequest(sql: Knex, { name, names, request, autoRenew, bindSiteId }: NewRequest, now: Date) {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `insert into certificate (name, names, requested_names, source, status, auto_renew, renew_at, bind_site_id, request,
       created_at, updated_at) values (?, ?, ?, 'acme', 'pending', ?, ?, ?, ?, ?, ?) returning id`,
    [name, names, names, autoRenew, now, bindSiteId, JSON.stringify(request), now, now] as never,
  );
  return rows[0]!.id;
}

/** Inserts a rehearsal that is due now; answers its id. */
export async function insertRehearsal(
  sql: Knex,
  { name, names, request }: Pick<NewRequest, 'name' | 'names' | 'request'>,
  now: Date,
): Promise<string> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `insert into certificate (name, names, requested_names, source, status, renew_at, request, rehearsal, created_at,
       updated_at) values (?, ?, ?, 'acme', 'pending', ?, ?, true, ?, ?) returning id`,
    [name, names, names, now, JSON.stringify(request), now, now] as never,
  );
  return rows[0]!.id;
}

/** Its authority issued what was asked for; nothing of it is kept. */
export async function setRehearsed(sql: Knex, id: string): Promise<void> {
  await sql.raw(
    `update certificate set status = 'ready', last_error = null,
        updated_at = greatest(now(), updated_at + interval '1 ms') where id = ? and rehearsal`,
    [id],
  );
}

/** Deletes rehearsals that ended a day ago; answers how many. */
export async function sweepRehearsals(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from certificate where ctid = any(array(
       select ctid from certificate where rehearsal and status in ('ready', 'error')
          and updated_at < now() - interval '1 day' limit ?))`,
    [SWEEP_BATCH],
  );
  return rowCount;
}

/** Asks for another one now. */
export async function requestRenewal(sql: Knex, id: string, now: Date): Promise<void> {
  await sql.raw(
    `update certificate set renew_at = ?, status = case when fingerprint is null then 'pending' else status end,
        updated_at = greatest(now(), updated_at + interval '1 ms') where id = ?`,
    [now, id],
  );
}

/** A request that failed keeps nobody from asking anew for its site. */
export async function releaseFailedBinding(sql: Knex, siteId: string): Promise<void> {
  await sql.raw("update certificate set bind_site_id = null where bind_site_id = ? and status = 'error'", [siteId]);
}

/** Address of the latest request; empty where there was none. */
export async function latestEmail(sql: Knex): Promise<string> {
  const { rows } = await sql.raw<{ rows: { email: string }[] }>(
    "select request->>'email' as email from certificate where source = 'acme' order by id desc limit 1",
  );
  return rows[0]?.email ?? '';
}

/** Certificates that are valid now and have one of the names, those that last longest first; at most 200. */
export async function readyCertificates(
  sql: Knex,
  names: readonly string[],
): Promise<{ id: string; name: string; names: string[] }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; name: string; names: string[] }[] }>(
    `select id, name, names from certificate where names && ?::text[] and not_before <= now() and not_after > now()
      order by not_after desc, id limit 200`,
    [names as never],
  );
  return rows;
}
