import { fail } from '../../contract/errors.ts';
import { User } from '../../models/auth/user.ts';
import type { Tx } from '../../runtime/write.ts';
import type { SessionRequest } from './auth-request.ts';

/**
 * Checks the password of whoever is signed in, before a transaction, because that takes a while; the answer locks the
 * user inside one and checks that the password is still the same. INVALID_PASSWORD otherwise.
 */
export async function confirmPassword(
  { runtime, passwords, session }: SessionRequest,
  password: string,
): Promise<(tx: Tx) => Promise<User>> {
  const user = await User.byId(runtime.pools.api, session.user_id);
  if (!user || !(await passwords.matches(password, user.passwordHash))) fail('INVALID_PASSWORD');
  return async (tx) => {
    const locked = await User.locked(tx.sql, user.id);
    if (locked?.passwordHash !== user.passwordHash) fail('INVALID_PASSWORD');
    return locked;
  };
}
