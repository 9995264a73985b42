// Service accounts and their keys. Locks: the account's row, then its keys.
import type { Knex } from 'knex';
import type { Scope } from '../../contract/procedure.ts';
import { BaseModel } from '../db/base.ts';

export class ServiceAccount extends BaseModel {
  static override tableName = 'service_account';

  declare id: string;
  declare name: string;
  declare scopes: Scope[];
  declare enabled: boolean;
  declare createdAt: Date;
  declare updatedAt: Date;

  /** Locked against other writers until the end of the transaction. */
  static async locked(sql: Knex, id: string): Promise<ServiceAccount | undefined> {
    return ServiceAccount.query(sql).findById(id).forUpdate();
  }

  static async page(sql: Knex, limit: number, offset: number): Promise<ServiceAccount[]> {
    return ServiceAccount.query(sql).orderBy('name').limit(limit).offset(offset);
  }
}

export class ServiceAccountKey extends BaseModel {
  static override tableName = 'service_account_key';

  declare id: string;
  declare serviceAccountId: string;
  declare name: string;
  declare prefix: string;
  declare secretHash: Buffer;
  declare createdAt: Date;
  declare lastUsedAt: Date | null;
  declare revokedAt: Date | null;

  static async live(sql: Knex, serviceAccountId: string): Promise<ServiceAccountKey[]> {
    return ServiceAccountKey.query(sql).where({ service_account_id: serviceAccountId }).whereNull('revoked_at');
  }
}

/** Keys of these accounts, newest first: of each account the live ones and then the newest revoked ones, up to `limit`. */
export async function keysOfAccounts(
  sql: Knex,
  accountIds: readonly string[],
  limit: number,
): Promise<ServiceAccountKey[]> {
  const shown = sql.raw(
    `select k.* from unnest(?::text[]) as a (id) cross join lateral (
       select * from service_account_key where service_account_id = a.id
        order by revoked_at is not null, id desc limit ?) k`,
    [accountIds as never, limit],
  );
  return ServiceAccountKey.query(sql)
    .from(sql.raw('(?) as service_account_key', [shown]))
    .orderBy('id', 'desc');
}

/** A live key with its account, for gateways. */
export interface AccountOfKey {
  keyId: string;
  id: string;
  name: string;
  scopes: Scope[];
}

/** The account of a live key; undefined for a revoked key and for one of a disabled account. */
export async function accountBySecretHash(sql: Knex, hash: Buffer): Promise<AccountOfKey | undefined> {
  const { rows } = await sql.raw(
    `select k.id as "keyId", a.id, a.name, a.scopes
       from service_account_key k join service_account a on a.id = k.service_account_id
      where k.secret_hash = ? and k.revoked_at is null and a.enabled`,
    [hash],
  );
  return rows[0];
}
