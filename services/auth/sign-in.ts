import { isIPv6 } from 'node:net';
import { fail } from '../../contract/errors.ts';
import type { Call } from '../../mixins/call.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { asUnavailable, write } from '../../mixins/write.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { countSignInAttempt } from '../../models/sign-in-attempt.ts';
import { User } from '../../models/user.ts';
import type { Passwords } from '../../mixins/passwords.ts';
import { createSession } from './sessions.ts';

const ATTEMPTS = 3;

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
  if (runtime.env.production) await limitAttempts(runtime, call.ip);
  const user = await User.byEmail(runtime.pools.api, email).catch((error) => {
    throw asUnavailable(error);
  });
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

async function limitAttempts(runtime: Runtime, ip: string | null): Promise<void> {
  let attempt: { count: number; seconds: number };
  try {
    attempt = await countSignInAttempt(runtime.pools.api, countedAddress(ip));
  } catch (error) {
    throw asUnavailable(error);
  }
  if (attempt.count > ATTEMPTS) fail('SIGN_IN_RATE_LIMITED', { retryAfterSeconds: Math.max(1, attempt.seconds) });
}

/** Whoever has an IPv6 address usually has its whole /64. */
function countedAddress(ip: string | null): string {
  if (ip === null || !isIPv6(ip)) return ip ?? 'unknown';
  const [head = '', tail] = ip.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0');
  const groups = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.join(':')}::/64`;
}
