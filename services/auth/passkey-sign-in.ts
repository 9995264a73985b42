// Signing in with a passkey alone: the browser offers those it has for this console and says whose it is.
import { generateAuthenticationOptions, verifyAuthenticationResponse } from '@simplewebauthn/server';
import type { AUTH_ENDPOINTS, AuthInput } from '../../contract/auth-endpoints.ts';
import { countedAddress } from '../../contract/scalars/cidr.ts';
import { notePasskeyUse, Passkey } from '../../models/auth/passkey.ts';
import { keepChallenge, takeChallenge } from '../../models/auth/passkey-challenge.ts';
import { User } from '../../models/auth/user.ts';
import { write } from '../../runtime/write.ts';
import { type AuthRequest, as, type Handler } from './auth-request.ts';
import { refuse, relyingParty, TIMEOUT_MS, userHandle } from './passkeys.ts';
import { presentNewSession } from './present-session.ts';
import { completeSignIn, noteRefusal, signedInCookies } from './sign-in.ts';

type Endpoint = typeof AUTH_ENDPOINTS.verifyAuthentication;

export const authenticateOptions: Handler<typeof AUTH_ENDPOINTS.generateAuthenticateOptions> = async ({
  runtime,
  call,
}) => {
  const { rpID } = relyingParty(runtime);
  const options = await generateAuthenticationOptions({ rpID, timeout: TIMEOUT_MS, userVerification: 'required' });
  await keepChallenge(runtime.pools.api, options.challenge, null, countedAddress(call.ip));
  return { body: options };
};

/** Signs in without a second step: a passkey is something one has, opened by something one knows or is. */
export const verifyAuthentication: Handler<Endpoint> = async (request, { response }) => {
  const { runtime, call } = request;
  const passkey = await Passkey.byCredential(runtime.pools.api, response.id);
  const user = passkey && (await User.byId(runtime.pools.api, passkey.userId));
  const refused = async (error: unknown): Promise<never> => {
    await noteRefusal(request, 'passkey', user ?? null);
    return refuse(runtime, error);
  };
  if (!user) return refused(new Error('the credential is unknown'));
  const { newCounter, credentialBackedUp } = await verify(request, passkey, response).catch(refused);
  const answer = await write(runtime, as(user, call), {}, async (tx) => {
    const current = await User.shared(tx.sql, user.id);
    if (!current || !(await notePasskeyUse(tx.sql, passkey.id, newCounter, credentialBackedUp))) return null;
    const done = await completeSignIn(tx, request, current, { method: 'passkey', passkeyId: passkey.id }, true);
    return { body: presentNewSession(done.session, current), cookies: signedInCookies(done.token, true) };
  });
  return answer ?? refused(new Error('the signature counter has not increased'));
};

async function verify({ runtime }: AuthRequest, passkey: Passkey, response: AuthInput<Endpoint>['response']) {
  const { rpID, origin } = relyingParty(runtime);
  const handle = Buffer.from(userHandle(passkey.userId)).toString('base64url');
  if (response.response.userHandle !== handle) throw new Error('the passkey belongs to another user');
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: response as Parameters<typeof verifyAuthenticationResponse>[0]['response'],
    expectedChallenge: (challenge) => takeChallenge(runtime.pools.api, challenge, null),
    expectedOrigin: origin,
    expectedRPID: rpID,
    requireUserVerification: true,
    credential: {
      id: passkey.credentialId,
      publicKey: new Uint8Array(passkey.publicKey),
      counter: Number(passkey.counter),
      transports: passkey.transports,
    },
  });
  if (!verified) throw new Error('the signature is wrong');
  return authenticationInfo;
}
