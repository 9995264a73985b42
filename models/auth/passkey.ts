import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

export class Passkey extends BaseModel {
  static override tableName = 'passkey';
  static override jsonAttributes = ['transports'];

  declare id: string;
  declare userId: string;
  declare name: string;
  /** Base64url. */
  declare credentialId: string;
  declare publicKey: Buffer;
  /** As text: the driver's form of a bigint. */
  declare counter: string;
  declare transports: string[];
  declare deviceType: 'singleDevice' | 'multiDevice';
  declare backedUp: boolean;
  declare createdAt: Date;
  declare lastUsedAt: Date | null;

  static async ofUser(sql: Knex, userId: string): Promise<Passkey[]> {
    return Passkey.query(sql).where({ user_id: userId }).orderBy('id');
  }

  static async byCredential(sql: Knex, credentialId: string): Promise<Passkey | undefined> {
    return Passkey.query(sql).findOne({ credential_id: credentialId });
  }
}

/** Notes a use; false when the counter has not risen since, as with a copy of the authenticator. */
export async function notePasskeyUse(sql: Knex, id: string, counter: number, backedUp: boolean): Promise<boolean> {
  const updated = await sql('passkey')
    .where({ id })
    .andWhere((query) => query.where('counter', '<', counter).orWhereRaw('counter = 0 and ? = 0', [counter]))
    .update({ counter, backed_up: backedUp, last_used_at: sql.fn.now() });
  return updated === 1;
}
