// Sign-in: the actions behind /api/auth and the session check of the gateway. None is a procedure: the gateway alone
// calls them, and turns their sessions into cookies.
import type { Context, ServiceSchema } from 'moleculer';
import { AUTH_ENDPOINTS } from '../../contract/auth-endpoints.ts';
import type { Call } from '../../mixins/call.ts';
import type { CallMeta } from '../../mixins/contract-service.ts';
import type { Role } from '../../mixins/env.ts';
import { Passwords } from '../../mixins/passwords.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { validateInput } from '../../mixins/validate.ts';
import { presentSession, presentUser } from './present-session.ts';
import { endSession, findSession } from './sessions.ts';
import { type SignIn, signIn } from './sign-in.ts';

export const roles: Role[] = ['app'];

interface AuthParams {
  input: unknown;
  /** Secret of the cookie that came with the request. */
  token: string | null;
}

type AuthContext = Context<AuthParams, CallMeta>;

export default (runtime: Runtime): ServiceSchema => {
  const passwords = new Passwords();
  return {
    name: 'auth',
    settings: { $noServiceNamePrefix: true },
    actions: {
      'auth.session': async ({ params }: Context<{ token: string }>) => {
        const found = await findSession(runtime, params.token, new Date());
        return found && { userId: found.session.user_id, name: found.session.name, refreshed: found.refreshed };
      },
      'auth.getSession': async ({ params: { token } }: AuthContext) => {
        const found = token === null ? null : await findSession(runtime, token, new Date());
        const session = found?.refreshed ? { token, lasting: true } : null;
        return { body: found ? presentSession(found.session) : null, session };
      },
      'auth.signInEmail': async ({ params, meta }: AuthContext) => {
        const input = validateInput(AUTH_ENDPOINTS.signInEmail, params.input) as SignIn & { rememberMe: boolean };
        const call: Call = { ...meta.call, changes: [] };
        const { user, token } = await signIn(runtime, passwords, input, params.token, call);
        return { body: { user: presentUser(user) }, session: { token, lasting: input.rememberMe } };
      },
      'auth.signOut': async ({ params: { input, token } }: AuthContext) => {
        validateInput(AUTH_ENDPOINTS.signOut, input);
        if (token !== null) await endSession(runtime, token);
        return { body: { success: true }, session: 'end' };
      },
    },
  } as unknown as ServiceSchema;
};
