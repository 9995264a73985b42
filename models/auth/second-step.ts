import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

/** A sign-in whose password was right and whose second step is due. */
export class SecondStep extends BaseModel {
  static override tableName = 'second_step';
  static override idColumn = 'token_hash';

  declare tokenHash: Buffer;
  declare userId: string;
  declare lasting: boolean;
  declare wrongCodes: number;
  declare expiresAt: Date;

  static async live(sql: Knex, tokenHash: Buffer): Promise<SecondStep | undefined> {
    return SecondStep.query(sql).where({ token_hash: tokenHash }).whereRaw('expires_at > now()').first();
  }

  /** Locked: of two answers to one step the second waits and finds what the first left. */
  static async locked(sql: Knex, tokenHash: Buffer): Promise<SecondStep | undefined> {
    return SecondStep.query(sql).where({ token_hash: tokenHash }).whereRaw('expires_at > now()').forUpdate().first();
  }
}

export async function deleteSecondSteps(sql: Knex, userId: string): Promise<void> {
  await sql('second_step').where({ user_id: userId }).orWhereRaw('expires_at < now()').delete();
}

export async function deleteExpiredSecondSteps(sql: Knex): Promise<void> {
  await sql.raw('delete from second_step where expires_at < now()');
}
