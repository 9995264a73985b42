import type { Knex } from 'knex';
import { BaseModel } from './base.ts';

export class AccessKey extends BaseModel {
  static override tableName = 'access_key';

  declare id: string;
  declare userId: string;
  declare name: string;
  declare prefix: string;
  declare secretHash: Buffer;
  declare scope: 'read' | 'readwrite';
  declare createdAt: Date;
  declare lastUsedAt: Date | null;
  declare revokedAt: Date | null;

  static async bySecretHash(sql: Knex, hash: Buffer): Promise<AccessKey | undefined> {
    return AccessKey.query(sql).findOne({ secret_hash: hash }).whereNull('revoked_at');
  }

  static async newest(sql: Knex, limit: number, offset: number): Promise<AccessKey[]> {
    return AccessKey.query(sql)
      .orderBy([
        { column: 'created_at', order: 'desc' },
        { column: 'id', order: 'desc' },
      ])
      .limit(limit)
      .offset(offset);
  }
}

/** Notes when keys were last used; an older time than the one stored changes nothing. */
export async function touchAccessKeys(sql: Knex, keys: readonly { id: string; at: string }[]): Promise<void> {
  await sql.raw(
    `update access_key k set last_used_at = used.at
       from unnest(?::text[], ?::timestamptz[]) as used (id, at)
      where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at)`,
    [keys.map((key) => key.id), keys.map((key) => key.at)],
  );
}
