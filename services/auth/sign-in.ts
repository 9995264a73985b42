import type { AUTH_ENDPOINTS } from '../../contract/auth-endpoints.ts';
import { fail } from '../../contract/errors.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { isTrusted } from '../../models/auth/trusted-device.ts';
import { User } from '../../models/auth/user.ts';
import type { CookieChange } from '../../runtime/auth-action.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { type AuthRequest, as, type Handler, targetOf } from './auth-request.ts';
import { presentUser } from './present-session.ts';
import { beginSecondStep } from './second-step.ts';
import { createSession, type NewSession } from './sessions.ts';
import { tokenHash } from './tokens.ts';

export type SignInMethod = 'password' | 'totp' | 'backup_code' | 'passkey';

/**
 * Signs in, or asks for the second step where one is on and the browser is not trusted. INVALID_CREDENTIALS takes as
 * long for an unknown user as for a wrong password.
 */
export const signInEmail: Handler<typeof AUTH_ENDPOINTS.signInEmail> = async (request, input) => {
  const { runtime, passwords, cookies, call } = request;
  const user = await User.byEmail(runtime.pools.api, input.email);
  const matches = await passwords.matches(input.password, user?.passwordHash);
  if (!user || !matches) {
    await noteRefusal(request, 'password', user ?? null, { email: input.email });
    fail('INVALID_CREDENTIALS');
  }
  const lasting = input.rememberMe ?? true;
  return write(runtime, as(user, call), {}, async (tx) => {
    const current = await User.shared(tx.sql, user.id);
    // Changed while this password was being checked: it opens nothing any more.
    if (current?.passwordHash !== user.passwordHash) fail('INVALID_CREDENTIALS');
    const { trustedDevice } = cookies;
    const trusted = trustedDevice !== null && (await isTrusted(tx.sql, user.id, tokenHash(trustedDevice)));
    if (current.twoFactorEnabled && !trusted) {
      const token = await beginSecondStep(tx, user.id, lasting);
      return { body: { twoFactorRedirect: true as const }, cookies: { secondStep: { token, lasting: true } } };
    }
    const { token } = await completeSignIn(tx, request, current, { method: 'password' }, lasting);
    return { body: { user: presentUser(current) }, cookies: signedInCookies(token, lasting) };
  });
};

/** Makes the session at the end of whatever proved the user, and audits it. */
export async function completeSignIn(
  tx: Tx,
  { cookies }: AuthRequest,
  user: User,
  how: { method: SignInMethod } & Record<string, unknown>,
  lasting: boolean,
): Promise<NewSession> {
  await recordAudit(tx, 'auth.sign_in', targetOf(user), how);
  return createSession(tx, user.id, lasting, cookies.session);
}

/** A new session's cookie; a half-way sign-in of this browser is over. */
export function signedInCookies(token: string, lasting: boolean): { session: CookieChange; secondStep: CookieChange } {
  return { session: { token, lasting }, secondStep: 'end' };
}

/** Audits a sign-in that was refused; `metadata` never holds what was tried as a secret. */
export async function noteRefusal(
  { runtime, call }: AuthRequest,
  method: SignInMethod,
  user: User | null,
  metadata: Record<string, unknown> = {},
): Promise<void> {
  await write(runtime, call, {}, async (tx) => {
    await recordAudit(tx, 'auth.sign_in_failed', user && targetOf(user), { method, ...metadata });
  });
}
