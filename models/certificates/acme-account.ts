// Accounts at certificate authorities: one for each directory, external account and address, shared by all certificates
// that name them.
import type { Knex } from 'knex';
import type { SecretPlace } from '../../runtime/sealer.ts';
import { BaseModel } from '../db/base.ts';

export class AcmeAccount extends BaseModel {
  static override tableName = 'acme_account';

  declare id: string;
  declare directoryUrl: string;
  /** Empty without an external account. */
  declare eabKid: string;
  declare email: string;
  declare privateKey: string;
  declare eabHmacKey: string | null;
  /** Null until the authority knows it. */
  declare url: string | null;
  declare createdAt: Date;

  static async byId(sql: Knex, id: string): Promise<AcmeAccount | undefined> {
    return AcmeAccount.query(sql).findById(id);
  }

  /** The account of these, locked until the end of the transaction. */
  static async lockedOf(
    sql: Knex,
    of: Pick<AcmeAccount, 'directoryUrl' | 'eabKid' | 'email'>,
  ): Promise<AcmeAccount | undefined> {
    return AcmeAccount.query(sql)
      .findOne({ directory_url: of.directoryUrl, eab_kid: of.eabKid, email: of.email })
      .forUpdate();
  }

  /** Inserts an account unless another did meanwhile. */
  static async insertNew(
    sql: Knex,
    account: Pick<AcmeAccount, 'id' | 'directoryUrl' | 'eabKid' | 'email' | 'privateKey' | 'eabHmacKey'>,
  ): Promise<void> {
    await AcmeAccount.query(sql).insert(account).onConflict(['directory_url', 'eab_kid', 'email']).ignore();
  }
}

/** What the authority at the directory calls our accounts. */
export async function accountUrls(sql: Knex, directoryUrl: string): Promise<string[]> {
  const accounts = await AcmeAccount.query(sql).select('url').where({ directory_url: directoryUrl });
  return accounts.flatMap(({ url }) => url ?? []);
}

export function accountSecretPlace(column: 'private_key' | 'eab_hmac_key', id: string): SecretPlace {
  return { table: 'acme_account', column, row: id };
}

/** Keeps what the authority calls the account; null: it does not know it any more. */
export async function setAccountUrl(sql: Knex, id: string, url: string | null): Promise<void> {
  await AcmeAccount.query(sql).patch({ url }).where({ id });
}

/** Replaces the sealed key of the external account. */
export async function setExternalKey(sql: Knex, id: string, eabHmacKey: string): Promise<void> {
  await AcmeAccount.query(sql).patch({ eabHmacKey }).where({ id });
}
