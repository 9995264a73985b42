// The directory of an authority of one's own: a setting of the console. The key of its external account is sealed with it.
import type { Knex } from 'knex';
import type { SecretPlace } from '../../runtime/sealer.ts';

export interface AcmeDirectory {
  /** https; null: there is none. */
  url: string | null;
  /** PEM of authorities that vouch for its server; empty: those of the system. */
  caPem: string;
  /** Of its external account; empty without one. */
  eabKid: string;
  /** Sealed; null without one. */
  eabHmacKey: string | null;
  updatedAt: Date;
}

export const NO_DIRECTORY = { url: null, caPem: '', eabKid: '', eabHmacKey: null } as const;

export function directorySecretPlace(): SecretPlace {
  return { table: 'acme_directory', column: 'eab_hmac_key', row: '1' };
}

export async function readAcmeDirectory(sql: Knex): Promise<AcmeDirectory | undefined> {
  const { rows } = await sql.raw<{ rows: AcmeDirectory[] }>(
    `select url, ca_pem as "caPem", eab_kid as "eabKid", eab_hmac_key as "eabHmacKey", updated_at as "updatedAt"
       from acme_directory`,
  );
  return rows[0];
}

/** The settings, locked against other writers until the end of the transaction. */
export async function lockAcmeDirectory(sql: Knex): Promise<AcmeDirectory | undefined> {
  await sql.raw("select pg_advisory_xact_lock(1398162181, hashtext('acme_directory'))");
  return readAcmeDirectory(sql);
}

export async function writeAcmeDirectory(sql: Knex, given: AcmeDirectory): Promise<void> {
  const { url, caPem, eabKid, eabHmacKey, updatedAt } = given;
  await sql.raw(
    `insert into acme_directory (id, url, ca_pem, eab_kid, eab_hmac_key, updated_at) values (1, ?, ?, ?, ?, ?)
       on conflict (id) do update set url = excluded.url, ca_pem = excluded.ca_pem, eab_kid = excluded.eab_kid,
         eab_hmac_key = excluded.eab_hmac_key, updated_at = excluded.updated_at`,
    [url, caPem, eabKid, eabHmacKey, updatedAt] as never,
  );
}
