// Sign-in: the actions behind /api/auth and the session check of the gateway. None is a procedure: the gateway alone
// calls them, and turns what they answer about cookies into headers.
import type { Context, ServiceSchema } from 'moleculer';
import { Counter } from 'prom-client';
import { AUTH_ENDPOINTS, type AuthEndpoint, type AuthInput } from '../../contract/auth-endpoints.ts';
import { fail } from '../../contract/errors.ts';
import type { CallMeta } from '../../mixins/contract-service.ts';
import { repeatable } from '../../mixins/repeatable.ts';
import { admitAttempt } from '../../models/auth/attempt.ts';
import { liveTokenHashes } from '../../models/auth/session.ts';
import type { AuthAnswer, AuthParams, KnownSession } from '../../runtime/auth-action.ts';
import type { Role } from '../../runtime/env.ts';
import { Passwords } from '../../runtime/passwords.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { validateInput } from '../../runtime/validate.ts';
import { asUnavailable, write } from '../../runtime/write.ts';
import { type AuthRequest, as, type Handler, type SessionRequest } from './auth-request.ts';
import { changePassword } from './change-password.ts';
import { authenticateOptions, verifyAuthentication } from './passkey-sign-in.ts';
import { deletePasskey, listPasskeys, registerOptions, verifyRegistration } from './passkeys.ts';
import { presentSession } from './present-session.ts';
import { endSession, type FoundSession, findSession, findSessionByHash } from './sessions.ts';
import { signInEmail } from './sign-in.ts';
import { tokenHash } from './tokens.ts';
import { disableTwoFactor, enableTwoFactor } from './two-factor.ts';
import { verifyBackupCode, verifyTotp } from './verify-code.ts';

export const roles: Role[] = ['app'];

const getSession: Handler<typeof AUTH_ENDPOINTS.getSession> = async ({ runtime, cookies }) => {
  const found = await findSession(runtime, cookies.session, new Date());
  if (!found) return { body: null };
  return { body: presentSession(found.session), ...refreshedCookie(cookies.session!, found) };
};

const signOut: Handler<typeof AUTH_ENDPOINTS.signOut> = async ({ runtime, cookies, call }) => {
  const { session } = cookies;
  if (session !== null) await write(runtime, call, {}, (tx) => endSession(tx, session));
  return { body: { success: true }, cookies: { session: 'end', secondStep: 'end' } };
};

/** The cookie of a session that was prolonged, to be sent again. */
function refreshedCookie(token: string, { session, refreshed }: FoundSession): Pick<AuthAnswer, 'cookies'> {
  return refreshed ? { cookies: { session: { token, lasting: session.lasting } } } : {};
}

export default (runtime: Runtime): ServiceSchema => {
  const hashes = new Counter({
    name: 'svc_password_hashes_total',
    help: 'Passwords and backup codes hashed.',
    registers: [runtime.metrics],
  });
  const passwords = new Passwords(() => hashes.inc());

  const action = <E extends AuthEndpoint>(endpoint: E, run: Handler<E>) => ({
    [endpoint.name]: async ({ params, meta }: Context<AuthParams, CallMeta>): Promise<AuthAnswer> => {
      const call = { ...meta.call, changes: [] };
      const request: AuthRequest = { runtime, passwords, cookies: params.cookies, call };
      try {
        return await run(request, params.input as AuthInput<E>);
      } catch (error) {
        throw asUnavailable(error);
      }
    },
  });

  const admit = async <E extends AuthEndpoint>(endpoint: E, { call }: AuthRequest, given: unknown) => {
    const input = validateInput(endpoint, given) as AuthInput<E>;
    if (endpoint.limit !== null) await admitAttempt(runtime, endpoint.limit, call.ip);
    return input;
  };

  /** An endpoint for anybody. */
  const open = <E extends AuthEndpoint & { access: 'public' }>(endpoint: E, handler: Handler<E>) =>
    action(endpoint, async (request, given) => handler(request, await admit(endpoint, request, given)));

  /** An endpoint for whoever is signed in. */
  const signedIn = <E extends AuthEndpoint & { access: 'session' }>(endpoint: E, handler: Handler<E, SessionRequest>) =>
    action(endpoint, async (request, given) => {
      const { cookies } = request;
      const found = await findSession(runtime, cookies.session, new Date());
      if (!found) fail('UNAUTHORIZED');
      const input = await admit(endpoint, request, given);
      const { session } = found;
      const call = as({ id: session.user_id, name: session.name }, request.call);
      const answer = await handler({ ...request, session, call }, input);
      return { ...answer, cookies: { ...refreshedCookie(cookies.session!, found).cookies, ...answer.cookies } };
    });

  return {
    name: 'auth',
    settings: { $noServiceNamePrefix: true },
    actions: {
      // For gateways: the live session whose secret has this SHA-256 (hexadecimal).
      'auth.session': repeatable(async ({ params }: Context<{ hash: string }>): Promise<KnownSession | null> => {
        const found = await findSessionByHash(runtime, Buffer.from(params.hash, 'hex'), new Date());
        if (!found) return null;
        const { user_id: userId, name, lasting, remaining } = found.session;
        return { userId, name, lasting, refreshed: found.refreshed, remainingMs: remaining };
      }),
      /** Whether the sessions with these secrets are live; prolongs none. */
      'auth.liveSessions': repeatable(async ({ params }: Context<{ tokens: string[] }>): Promise<boolean[]> => {
        const live = await liveTokenHashes(runtime.pools.api, params.tokens.map(tokenHash));
        return params.tokens.map((token) => live.has(tokenHash(token).toString('hex')));
      }),
      ...open(AUTH_ENDPOINTS.getSession, getSession),
      ...open(AUTH_ENDPOINTS.signInEmail, signInEmail),
      ...open(AUTH_ENDPOINTS.signOut, signOut),
      ...signedIn(AUTH_ENDPOINTS.changePassword, changePassword),
      ...signedIn(AUTH_ENDPOINTS.enableTwoFactor, enableTwoFactor),
      ...signedIn(AUTH_ENDPOINTS.disableTwoFactor, disableTwoFactor),
      ...open(AUTH_ENDPOINTS.verifyTotp, verifyTotp),
      ...open(AUTH_ENDPOINTS.verifyBackupCode, verifyBackupCode),
      ...signedIn(AUTH_ENDPOINTS.generateRegisterOptions, registerOptions),
      ...signedIn(AUTH_ENDPOINTS.verifyRegistration, verifyRegistration),
      ...signedIn(AUTH_ENDPOINTS.listUserPasskeys, listPasskeys),
      ...signedIn(AUTH_ENDPOINTS.deletePasskey, deletePasskey),
      ...open(AUTH_ENDPOINTS.generateAuthenticateOptions, authenticateOptions),
      ...open(AUTH_ENDPOINTS.verifyAuthentication, verifyAuthentication),
    },
  } as unknown as ServiceSchema;
};
