// Two-factor sign-in of an account: off, a secret that waits for its first code, on.
//
//   off, waiting   enable (password)       waiting, with a new secret and new backup codes
//   waiting        a code of the secret    on
//   waiting, on    disable (password)      off
import type { AUTH_ENDPOINTS } from '../../contract/auth-endpoints.ts';
import { fail } from '../../contract/errors.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { deleteSecondSteps } from '../../models/auth/second-step.ts';
import { deleteTrustedDevices } from '../../models/auth/trusted-device.ts';
import { TOTP_SECRET, TwoFactor } from '../../models/auth/two-factor.ts';
import { User } from '../../models/auth/user.ts';
import { write } from '../../runtime/write.ts';
import { type Handler, type SessionRequest, targetOf } from './auth-request.ts';
import { hashBackupCodes, newBackupCodes } from './backup-codes.ts';
import { confirmPassword } from './confirm-password.ts';
import { newTotpSecret, totpUri } from './totp.ts';

export const enableTwoFactor: Handler<typeof AUTH_ENDPOINTS.enableTwoFactor, SessionRequest> = async (
  request,
  { password },
) => {
  const { runtime, passwords, call, session } = request;
  if (session.two_factor_enabled) fail('TWO_FACTOR_ENABLED');
  const lockUser = await confirmPassword(request, password);
  const secret = newTotpSecret();
  const backupCodes = newBackupCodes();
  const hashes = await hashBackupCodes(passwords, backupCodes);
  return write(runtime, call, {}, async (tx) => {
    const user = await lockUser(tx);
    if (user.twoFactorEnabled) fail('TWO_FACTOR_ENABLED');
    const sealed = runtime.sealer.seal(secret, { ...TOTP_SECRET, row: user.id });
    await TwoFactor.replace(tx.sql, user.id, sealed, hashes);
    return { body: { totpURI: totpUri(secret, user.email), backupCodes } };
  });
};

/** Also forgets a secret that waits, and every trusted device: they stood for a second step. */
export const disableTwoFactor: Handler<typeof AUTH_ENDPOINTS.disableTwoFactor, SessionRequest> = async (
  request,
  { password },
) => {
  const lockUser = await confirmPassword(request, password);
  return write(request.runtime, request.call, {}, async (tx) => {
    const user = await lockUser(tx);
    await TwoFactor.remove(tx.sql, user.id);
    await deleteTrustedDevices(tx.sql, user.id);
    await deleteSecondSteps(tx.sql, user.id);
    if (user.twoFactorEnabled) {
      await User.query(tx.sql).findById(user.id).patch({ twoFactorEnabled: false, updatedAt: tx.now });
      await recordAudit(tx, 'account.two_factor_disable', targetOf(user));
    }
    return { body: { status: true }, cookies: { trustedDevice: 'end' as const, secondStep: 'end' as const } };
  });
};
