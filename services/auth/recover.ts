// What an administrator does from the machine's shell when the operator cannot sign in any more.

import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Passkey } from '../../models/auth/passkey.ts';
import { deleteSecondSteps } from '../../models/auth/second-step.ts';
import { deleteTrustedDevices } from '../../models/auth/trusted-device.ts';
import { TwoFactor } from '../../models/auth/two-factor.ts';
import { User } from '../../models/auth/user.ts';
import type { Tx } from '../../runtime/write.ts';
import { targetOf } from './auth-request.ts';
import { endSessions } from './sessions.ts';

export interface Recovery {
  /** Hash of the new password; null leaves it. */
  passwordHash: string | null;
  disableTwoFactor: boolean;
}

export interface Recovered {
  email: string;
  sessionsRevoked: number;
  passkeysKept: number;
}

/** Recovers the only account; sessions, trusted devices and half-way sign-ins end. Null while there is no account. */
export async function recoverOperator(tx: Tx, recovery: Recovery): Promise<Recovered | null> {
  const { passwordHash, disableTwoFactor } = recovery;
  const { sql, now } = tx;
  const found = await User.query(sql).orderBy('id').first();
  const user = found && (await User.locked(sql, found.id));
  if (!user) return null;
  await User.query(sql)
    .findById(user.id)
    .patch({
      ...(passwordHash !== null && { passwordHash }),
      ...(disableTwoFactor && { twoFactorEnabled: false }),
      updatedAt: now,
    });
  if (disableTwoFactor) await TwoFactor.remove(sql, user.id);
  const sessionsRevoked = await endSessions(tx, user.id);
  await deleteTrustedDevices(sql, user.id);
  await deleteSecondSteps(sql, user.id);
  const metadata = { passwordReset: passwordHash !== null, twoFactorDisabled: disableTwoFactor, sessionsRevoked };
  await recordAudit(tx, 'account.recover', targetOf(user), metadata);
  return { email: user.email, sessionsRevoked, passkeysKept: (await Passkey.ofUser(sql, user.id)).length };
}
