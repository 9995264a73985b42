import type { AUTH_ENDPOINTS } from '../../contract/auth-endpoints.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { deleteSecondSteps } from '../../models/auth/second-step.ts';
import { deleteTrustedDevices } from '../../models/auth/trusted-device.ts';
import { User } from '../../models/auth/user.ts';
import { write } from '../../runtime/write.ts';
import { type Handler, type SessionRequest, targetOf } from './auth-request.ts';
import { confirmPassword } from './confirm-password.ts';
import { presentUser } from './present-session.ts';
import { createSession, endSessions } from './sessions.ts';
import { signedInCookies } from './sign-in.ts';

/** Sets a new password. Whatever the old one opened ends: sessions, trusted devices, half-way sign-ins. */
export const changePassword: Handler<typeof AUTH_ENDPOINTS.changePassword, SessionRequest> = async (request, input) => {
  const { runtime, passwords, call, session } = request;
  const lockUser = await confirmPassword(request, input.currentPassword);
  const passwordHash = await passwords.hash(input.newPassword);
  return write(runtime, call, {}, async (tx) => {
    const user = await lockUser(tx);
    await User.query(tx.sql).findById(user.id).patch({ passwordHash, updatedAt: tx.now });
    const ended = await endSessions(tx, user.id);
    await deleteTrustedDevices(tx.sql, user.id);
    await deleteSecondSteps(tx.sql, user.id);
    const { token } = await createSession(tx, user.id, session.lasting, null);
    await recordAudit(tx, 'account.password_change', targetOf(user), { sessionsEnded: ended - 1 });
    return {
      body: { user: presentUser(user) },
      cookies: { ...signedInCookies(token, session.lasting), trustedDevice: 'end' as const },
    };
  });
};
