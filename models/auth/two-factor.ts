// The operator's second factor: the sealed secret of an authenticator app, and codes for the day the app is lost.
import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

/** Where the secret is sealed; the row is the user's id. */
export const TOTP_SECRET = { table: 'two_factor', column: 'secret' } as const;

export class TwoFactor extends BaseModel {
  static override tableName = 'two_factor';
  static override idColumn = 'user_id';

  declare userId: string;
  declare secret: string;
  declare lastStep: string | null;
  declare wrongCodes: number;
  declare wrongSince: Date | null;

  /** Replaces whatever the user had, codes included. */
  static async replace(sql: Knex, userId: string, secret: string, codeHashes: readonly string[]): Promise<void> {
    await TwoFactor.remove(sql, userId);
    await TwoFactor.query(sql).insert({ userId, secret });
    await sql('backup_code').insert(codeHashes.map((code_hash) => ({ user_id: userId, code_hash })));
  }

  static async remove(sql: Knex, userId: string): Promise<void> {
    await TwoFactor.query(sql).deleteById(userId);
  }
}

/** Marks the step as used; false when it or a later one was used before. */
export async function useStep(sql: Knex, userId: string, step: number): Promise<boolean> {
  const updated = await sql('two_factor')
    .where({ user_id: userId })
    .andWhere((query) => query.whereNull('last_step').orWhere('last_step', '<', step))
    .update({ last_step: step, wrong_codes: 0, wrong_since: null });
  return updated === 1;
}

/** Counts a wrong code; the count begins again when the last count began longer ago. */
export async function countWrongCode(sql: Knex, userId: string, windowSeconds: number): Promise<void> {
  await sql.raw(
    `update two_factor set
       wrong_codes = case when wrong_since > now() - make_interval(secs => :window) then wrong_codes + 1 else 1 end,
       wrong_since = case when wrong_since > now() - make_interval(secs => :window) then wrong_since else now() end
     where user_id = :userId`,
    { userId, window: windowSeconds },
  );
}

/** A hash of one of the user's unused backup codes, for its salt. */
export async function anyBackupCodeHash(sql: Knex, userId: string): Promise<string | undefined> {
  const row = await sql('backup_code').where({ user_id: userId }).first('code_hash');
  return row?.code_hash as string | undefined;
}

/** Uses a backup code up; false when there is none with this hash (any more). */
export async function useBackupCode(sql: Knex, userId: string, codeHash: string): Promise<boolean> {
  return (await sql('backup_code').where({ user_id: userId, code_hash: codeHash }).delete()) === 1;
}

export async function backupCodesLeft(sql: Knex, userId: string): Promise<number> {
  const row = await sql('backup_code').where({ user_id: userId }).count({ count: '*' }).first();
  return Number(row?.count);
}
