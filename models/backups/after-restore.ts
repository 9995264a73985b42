// What must not go on in a restored database as it was: a thief of a cookie, tokens that were used since, half-done requests.
import type { Knex } from 'knex';

/** What ended, by sort. */
export interface EndedByRestore {
  sessions: number;
  trustedDevices: number;
  enrollmentTokens: number;
}

/**
 * Ends sessions, half-way sign-ins, trusted devices and unused enrollment tokens: some of them had ended, or were used, after
 * the backup. Requests that were under way end too, so that their Idempotency-Keys work again.
 */
export async function endAfterRestore(sql: Knex, now: Date): Promise<EndedByRestore> {
  const sessions = await sql('session').delete();
  const trustedDevices = await sql('trusted_device').delete();
  await sql('second_step').delete();
  await sql('idempotency_record').whereNot({ state: 'done' }).delete();
  // The backup itself was under way in it.
  await sql('backup').whereNull('ended_at').delete();
  const enrollmentTokens = await sql('enrollment_token')
    .whereNull('used_at')
    .where('expires_at', '>', now)
    .update({ expires_at: now });
  return { sessions, trustedDevices, enrollmentTokens };
}
