// TXT records that orders of certificates have written or may have written. A row is there before its record, and goes
// after it.
import type { Knex } from 'knex';

export interface DnsRecord {
  certificateId: string;
  credentialId: string;
  /** Where the record is, without a dot at the end. */
  name: string;
  value: string;
}

/** Removals that failed this often keep nobody from deleting the credential. */
export const TRIES_BEFORE_FORGOTTEN = 5;
const REMOVING_SECONDS = 120;
const LONGEST_PAUSE_SECONDS = 6 * 3600;

const COLUMNS = 'r.certificate_id as "certificateId", r.credential_id as "credentialId", r.name, r.value';

/**
 * Notes records that an order is about to write, each once. False: one of them is being removed right now, for some two
 * minutes at most, and has to be noted again.
 */
export async function noteDnsRecords(sql: Knex, records: readonly DnsRecord[]): Promise<boolean> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `insert into acme_dns_record as r (certificate_id, credential_id, name, value)
     select g."certificateId", g."credentialId", g.name, g.value
       from jsonb_to_recordset(?::jsonb) as g("certificateId" text, "credentialId" text, name text, value text)
     on conflict (certificate_id, name, value) do update set ended = false, tries = 0, removing_until = null,
       credential_id = excluded.credential_id
      where r.removing_until is null or r.removing_until <= now()`,
    [JSON.stringify(records)],
  );
  return rowCount === records.length;
}

/** Notes a record that is to be gone in two minutes. False: there is no such credential. */
export async function noteTrialRecord(sql: Knex, record: DnsRecord): Promise<boolean> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `insert into acme_dns_record (certificate_id, credential_id, name, value, ended, next_at)
     select ?, id, ?, ?, true, now() + make_interval(secs => ${REMOVING_SECONDS}) from dns_credential where id = ? for share`,
    [record.certificateId, record.name, record.value, record.credentialId],
  );
  return rowCount === 1;
}

/** Records that the order of the certificate needs. */
export async function dnsRecordsOf(sql: Knex, certificateId: string): Promise<DnsRecord[]> {
  const { rows } = await sql.raw<{ rows: DnsRecord[] }>(
    `select ${COLUMNS} from acme_dns_record r where r.certificate_id = ? and not r.ended order by r.name, r.value`,
    [certificateId],
  );
  return rows;
}

/** The order needs its records no more. */
export async function endDnsRecords(sql: Knex, certificateId: string): Promise<void> {
  await sql.raw(
    'update acme_dns_record set ended = true, tries = 0, next_at = now() where certificate_id = ? and not ended',
    [certificateId],
  );
}

/** Takes up to `limit` records that nobody needs any more; they are the caller's for two minutes. */
export async function takeEndedRecords(sql: Knex, limit: number): Promise<DnsRecord[]> {
  const { rows } = await sql.raw<{ rows: DnsRecord[] }>(
    `update acme_dns_record r set removing_until = now() + make_interval(secs => ${REMOVING_SECONDS})
      where r.ctid = any(array(
        select ctid from acme_dns_record
         where ended and next_at <= now() and (removing_until is null or removing_until <= now())
         order by next_at limit ? for update skip locked))
     returning ${COLUMNS}`,
    [limit],
  );
  return rows;
}

/** Whether another order needs the same record. */
export async function isRecordNeeded(sql: Knex, { name, value }: DnsRecord): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: unknown[] }>(
    'select 1 from acme_dns_record where name = ? and value = ? and not ended limit 1',
    [name, value],
  );
  return rows.length > 0;
}

export async function forgetDnsRecord(sql: Knex, { certificateId, name, value }: DnsRecord): Promise<void> {
  await sql('acme_dns_record').where({ certificate_id: certificateId, name, value, ended: true }).delete();
}

/** It could not be removed: again after a minute, then after twice the time, up to six hours. */
export async function postponeRemoval(sql: Knex, { certificateId, name, value }: DnsRecord): Promise<void> {
  await sql.raw(
    `update acme_dns_record set tries = least(tries + 1, 100), removing_until = null,
        next_at = now() + make_interval(secs => least(60 * 2 ^ least(tries, 20), ${LONGEST_PAUSE_SECONDS}))
      where certificate_id = ? and name = ? and value = ? and ended`,
    [certificateId, name, value],
  );
}

/** Records written with the credential that are, or are soon to be, removed. */
export async function recordsToRemove(sql: Knex, credentialId: string): Promise<number> {
  const { rows } = await sql.raw<{ rows: { total: number }[] }>(
    'select count(*)::int as total from acme_dns_record where credential_id = ? and (not ended or tries < ?)',
    [credentialId, TRIES_BEFORE_FORGOTTEN],
  );
  return rows[0]!.total;
}

/** Leaves records of the credential that nobody could remove; answers how many. */
export async function forgetRecordsOf(sql: Knex, credentialId: string): Promise<number> {
  return sql('acme_dns_record').where({ credential_id: credentialId }).delete();
}
