// The second step of a sign-in: begun when the password was right, ended by a code within ten minutes. States of one:
//
//   begun   right code         gone, signed in
//   begun   fifth wrong code   gone
//   begun   ten minutes        gone
//   begun   change of password, two-factor off, recovery   gone
import { LIFETIME_SECONDS } from '../../contract/auth-endpoints.ts';
import { deleteExpiredSecondSteps, SecondStep } from '../../models/auth/second-step.ts';
import type { Tx } from '../../runtime/write.ts';
import { newToken, tokenHash } from './tokens.ts';

/** Begins a second step; answers the secret that the browser has to bring back with the code. */
export async function beginSecondStep(tx: Tx, userId: string, lasting: boolean): Promise<string> {
  await deleteExpiredSecondSteps(tx.sql);
  const token = newToken();
  const expiresAt = new Date(tx.now.getTime() + LIFETIME_SECONDS.secondStep * 1000);
  await SecondStep.query(tx.sql).insert({ tokenHash: tokenHash(token), userId, lasting, expiresAt });
  return token;
}
