// Passkeys of the account: registered by whoever is signed in, listed, deleted. Discoverable and with user verification,
// so that one alone signs in.
import { isIP } from 'node:net';
import { generateRegistrationOptions, verifyRegistrationResponse } from '@simplewebauthn/server';
import type { AUTH_ENDPOINTS, AuthOutput } from '../../contract/auth-endpoints.ts';
import { errorCodeOf, fail } from '../../contract/errors.ts';
import { countedAddress } from '../../contract/scalars/cidr.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { Passkey } from '../../models/auth/passkey.ts';
import { keepChallenge, takeChallenge } from '../../models/auth/passkey-challenge.ts';
import { isLive } from '../../models/auth/session.ts';
import { User } from '../../models/auth/user.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { asUnavailable, write } from '../../runtime/write.ts';
import { type Handler, type SessionRequest, targetOf } from './auth-request.ts';

const NAME = 'Edge Delivery Console';
/** How long the browser waits for its user; as long as the challenge is good. */
export const TIMEOUT_MS = 300_000;
const LIMIT = 20;
/** EdDSA, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257];

/** Whom passkeys belong to: the host of the public address. PASSKEYS_UNAVAILABLE where it is an IP address. */
export function relyingParty({ env: { publicUrl } }: Pick<Runtime, 'env'>): { rpID: string; origin: string } {
  const { hostname } = new URL(publicUrl);
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) fail('PASSKEYS_UNAVAILABLE', { publicUrl });
  return { rpID: hostname, origin: publicUrl };
}

/** The user as authenticators know it. */
export function userHandle(userId: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(userId);
}

export const registerOptions: Handler<typeof AUTH_ENDPOINTS.generateRegisterOptions, SessionRequest> = async ({
  runtime,
  call,
  session,
}) => {
  const { rpID } = relyingParty(runtime);
  const sql = runtime.pools.api;
  const own = await Passkey.ofUser(sql, session.user_id);
  if (own.length >= LIMIT) fail('PASSKEY_LIMIT', { limit: LIMIT });
  const options = await generateRegistrationOptions({
    rpName: NAME,
    rpID,
    userName: session.email,
    userDisplayName: session.name,
    userID: userHandle(session.user_id),
    timeout: TIMEOUT_MS,
    attestationType: 'none',
    excludeCredentials: own.map(({ credentialId, transports }) => ({ id: credentialId, transports })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  });
  await keepChallenge(sql, options.challenge, session.id, countedAddress(call.ip));
  return { body: options };
};

export const verifyRegistration: Handler<typeof AUTH_ENDPOINTS.verifyRegistration, SessionRequest> = async (
  { runtime, call, session },
  { response, name },
) => {
  const { rpID, origin } = relyingParty(runtime);
  const { registrationInfo } = await verifyRegistrationResponse({
    response: response as Parameters<typeof verifyRegistrationResponse>[0]['response'],
    expectedChallenge: (challenge) => takeChallenge(runtime.pools.api, challenge, session.id),
    expectedOrigin: origin,
    expectedRPID: rpID,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch((error: unknown) => refuse(runtime, error));
  if (!registrationInfo) fail('PASSKEY_REFUSED');
  const { credential, credentialDeviceType, credentialBackedUp } = registrationInfo;
  return write(runtime, call, {}, async (tx) => {
    // Two registrations of one user are counted one after the other.
    const user = await User.locked(tx.sql, session.user_id);
    if (!user || !(await isLive(tx.sql, session.id))) fail('UNAUTHORIZED');
    if ((await Passkey.ofUser(tx.sql, user.id)).length >= LIMIT) fail('PASSKEY_LIMIT', { limit: LIMIT });
    if (await Passkey.byCredential(tx.sql, credential.id)) fail('PASSKEY_REFUSED');
    const passkey = await Passkey.query(tx.sql)
      .insert({
        userId: user.id,
        name,
        credentialId: credential.id,
        publicKey: Buffer.from(credential.publicKey),
        counter: String(credential.counter),
        transports: credential.transports ?? [],
        deviceType: credentialDeviceType,
        backedUp: credentialBackedUp,
      })
      .returning('*');
    await recordAudit(tx, 'account.passkey_add', targetOf(user), { passkeyId: passkey.id, name });
    return { body: presentPasskey(passkey) };
  });
};

export const listPasskeys: Handler<typeof AUTH_ENDPOINTS.listUserPasskeys, SessionRequest> = async ({
  runtime,
  session,
}) => ({ body: (await Passkey.ofUser(runtime.pools.api, session.user_id)).map(presentPasskey) });

export const deletePasskey: Handler<typeof AUTH_ENDPOINTS.deletePasskey, SessionRequest> = async (
  { runtime, call, session },
  { id },
) =>
  write(runtime, call, {}, async (tx) => {
    const own = { id, user_id: session.user_id };
    const [passkey] = await Passkey.query(tx.sql).delete().where(own).returning('*');
    if (!passkey) fail('PASSKEY_NOT_FOUND');
    const target = targetOf({ id: session.user_id, name: session.name });
    await recordAudit(tx, 'account.passkey_delete', target, { passkeyId: id, name: passkey.name });
    return { body: { status: true } };
  });

/**
 * PASSKEY_REFUSED for whatever the check of a browser's answer threw, a database that is away apart; the reason goes to
 * the log.
 */
export function refuse({ log }: Runtime, error: unknown): never {
  if (errorCodeOf(asUnavailable(error)) === 'SERVICE_UNAVAILABLE') throw error;
  log.info({ reason: (error as Error).message }, 'passkey refused');
  fail('PASSKEY_REFUSED');
}

function presentPasskey(row: Passkey): AuthOutput<typeof AUTH_ENDPOINTS.verifyRegistration> {
  const { id, name, createdAt, lastUsedAt, deviceType, backedUp } = row;
  return {
    id,
    name,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    deviceType,
    backedUp,
  };
}
