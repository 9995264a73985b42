import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

/** A browser that is not asked for a second step. */
export class TrustedDevice extends BaseModel {
  static override tableName = 'trusted_device';
  static override idColumn = 'token_hash';

  declare tokenHash: Buffer;
  declare userId: string;
  declare expiresAt: Date;
}

export async function isTrusted(sql: Knex, userId: string, tokenHash: Buffer): Promise<boolean> {
  const found = await TrustedDevice.query(sql)
    .where({ user_id: userId, token_hash: tokenHash })
    .whereRaw('expires_at > now()')
    .first();
  return found !== undefined;
}

/** All of the user's, and everybody's expired ones. */
export async function deleteTrustedDevices(sql: Knex, userId: string): Promise<void> {
  await sql('trusted_device').where({ user_id: userId }).orWhereRaw('expires_at < now()').delete();
}

export async function deleteExpiredTrustedDevices(sql: Knex): Promise<void> {
  await sql.raw('delete from trusted_device where expires_at < now()');
}
