import { fail } from '../../contract/errors.ts';
import type { Call } from '../../mixins/call.ts';
import type { Passwords } from '../../mixins/passwords.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { write } from '../../mixins/write.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { admitAttempt } from '../../models/sign-in-attempt.ts';
import { User } from '../../models/user.ts';
import { createSession } from './sessions.ts';

export interface SignIn {
  email: string;
  password: string;
}

export interface SignedIn {
  user: User;
  /** The session's secret. */
  token: string;
}

/**
 * Signs in; INVALID_CREDENTIALS takes as long for an unknown user as for a wrong password. In production at most 3
 * attempts of an address in 10 s: SIGN_IN_RATE_LIMITED.
 */
export async function signIn(
  runtime: Runtime,
  passwords: Passwords,
  { email, password }: SignIn,
  brought: string | null,
  call: Call,
): Promise<SignedIn> {
  await admitAttempt(runtime, call.ip);
  const user = await User.byEmail(runtime.pools.api, email);
  const matches = await passwords.matches(password, user?.passwordHash);
  if (!user || !matches) {
    await recordRefusal(runtime, call, email, user);
    fail('INVALID_CREDENTIALS');
  }
  const actor = { type: 'user', id: user.id, name: user.name } as const;
  const token = await write(runtime, { ...call, actor }, {}, async (tx) => {
    await recordAudit(tx, 'auth.sign_in', { type: 'user', id: user.id, name: user.name });
    return createSession(tx, user.id, brought);
  });
  return { user, token };
}

async function recordRefusal(runtime: Runtime, call: Call, email: string, user: User | undefined): Promise<void> {
  await write(runtime, call, {}, async (tx) => {
    const target = user ? { type: 'user', id: user.id, name: user.name } : null;
    await recordAudit(tx, 'auth.sign_in_failed', target, { email });
  });
}
