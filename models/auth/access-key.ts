import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

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
