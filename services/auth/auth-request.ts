import type { AuthEndpoint, AuthInput, AuthOutput } from '../../contract/auth-endpoints.ts';
import type { LiveSession } from '../../models/auth/session.ts';
import type { User } from '../../models/auth/user.ts';
import type { AuthAnswer, BroughtCookies } from '../../runtime/auth-action.ts';
import type { Actor, Call } from '../../runtime/call.ts';
import type { Passwords } from '../../runtime/passwords.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** What every handler of an endpoint works with. */
export interface AuthRequest {
  runtime: Runtime;
  passwords: Passwords;
  cookies: BroughtCookies;
  call: Call;
}

/** A request with a live session; its call acts as the session's user. */
export interface SessionRequest extends AuthRequest {
  session: LiveSession;
}

export type Handler<E extends AuthEndpoint, R extends AuthRequest = AuthRequest> = (
  request: R,
  input: AuthInput<E>,
) => Promise<AuthAnswer<AuthOutput<E>>>;

/** The call, done by the user. */
export function as({ id, name }: Pick<User, 'id' | 'name'>, call: Call): Call {
  const actor: Actor = { type: 'user', id, name };
  return { ...call, actor };
}

/** The user as the target of an audit entry. */
export function targetOf({ id, name }: Pick<User, 'id' | 'name'>) {
  return { type: 'user', id, name };
}
