import type { Knex } from 'knex';
import type { Pool } from 'pg';

export interface SetupState {
  setup_token_hash: Buffer | null;
  setup_completed_at: Date | null;
}

export async function isSetUp(sql: Knex): Promise<boolean> {
  return (await setupCompletedAt(sql)) !== null;
}

export async function setupCompletedAt(sql: Knex): Promise<Date | null> {
  const row = await sql('console_state').first('setup_completed_at');
  return (row?.setup_completed_at as Date | null | undefined) ?? null;
}

/** Locks the setup for this transaction; fails at once (lock_not_available) while another runs. */
export async function lockSetup(sql: Knex): Promise<SetupState> {
  return (await sql('console_state')
    .forUpdate()
    .noWait()
    .first('setup_token_hash', 'setup_completed_at')) as SetupState;
}

/** The token is of no use any more and goes. */
export async function completeSetup(sql: Knex, at: Date): Promise<void> {
  await sql('console_state').update({ setup_token: null, setup_token_hash: null, setup_completed_at: at });
}

/** The sealed key of the marks of positions; null before one was made. */
export async function readMarkKey(pool: Pick<Pool, 'query'>): Promise<string | null> {
  const { rows } = await pool.query<{ mark_key: string | null }>('select mark_key from console_state');
  return rows[0]?.mark_key ?? null;
}

/** Stores the sealed key unless another process was first; answers the one that stays. */
export async function keepMarkKey(pool: Pick<Pool, 'query'>, sealed: string): Promise<string> {
  const { rows } = await pool.query<{ mark_key: string }>(
    'update console_state set mark_key = coalesce(mark_key, $1) returning mark_key',
    [sealed],
  );
  return rows[0]!.mark_key;
}
