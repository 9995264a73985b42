import type { Knex } from 'knex';

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
