import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

/** The operator. */
export class User extends BaseModel {
  static override tableName = 'user';

  declare id: string;
  declare name: string;
  declare email: string;
  declare passwordHash: string;
  declare twoFactorEnabled: boolean;
  declare createdAt: Date;
  declare updatedAt: Date;

  static async byEmail(sql: Knex, email: string): Promise<User | undefined> {
    return User.query(sql).whereRaw('lower(email) = lower(?)', [email]).first();
  }

  static async byId(sql: Knex, id: string): Promise<User | undefined> {
    return User.query(sql).findById(id);
  }

  /** Locked against a change of password or second factor until the transaction ends. */
  static async shared(sql: Knex, id: string): Promise<User | undefined> {
    return User.query(sql).findById(id).forShare();
  }

  /** Locked alone: nothing signs in with what this transaction changes. */
  static async locked(sql: Knex, id: string): Promise<User | undefined> {
    return User.query(sql).findById(id).forUpdate();
  }

  static async withAccessKey(sql: Knex, keyId: string): Promise<User | undefined> {
    return User.query(sql)
      .whereIn('id', sql('access_key').where({ id: keyId }).select('user_id'))
      .first();
  }
}
