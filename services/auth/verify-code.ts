// Codes of the second step, wherever one is asked for: to end a sign-in, or to put a new secret in force.
import { type AUTH_ENDPOINTS, LIFETIME_SECONDS } from '../../contract/auth-endpoints.ts';
import { fail } from '../../contract/errors.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { SecondStep } from '../../models/auth/second-step.ts';
import { isLive } from '../../models/auth/session.ts';
import { deleteExpiredTrustedDevices, TrustedDevice } from '../../models/auth/trusted-device.ts';
import {
  anyBackupCodeHash,
  backupCodesLeft,
  countWrongCode,
  TOTP_SECRET,
  TwoFactor,
  useBackupCode,
  useStep,
} from '../../models/auth/two-factor.ts';
import { User } from '../../models/auth/user.ts';
import type { AuthAnswer, CookieChange } from '../../runtime/auth-action.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { type AuthRequest, as, type Handler, targetOf } from './auth-request.ts';
import { hashBackupCode } from './backup-codes.ts';
import { presentUser } from './present-session.ts';
import { findSession } from './sessions.ts';
import { completeSignIn, type SignInMethod, signedInCookies } from './sign-in.ts';
import { newToken, tokenHash } from './tokens.ts';
import { stepOf } from './totp.ts';

/** Wrong codes that end a second step. */
const STEP_TRIES = 5;
/**
 * Wrong codes of an account in an hour, wherever they come from: whoever knows the password could otherwise try all
 * codes from many addresses. Backup codes, which nobody guesses, and passkeys work meanwhile.
 */
const ACCOUNT_TRIES = 20;
const ACCOUNT_WINDOW_SECONDS = 3600;

/** Whether the code proves the user; uses it up when it does. */
type Proof = (tx: Tx, userId: string) => Promise<boolean>;

type SignedIn = AuthAnswer<{ user: ReturnType<typeof presentUser> }>;

/** Ends the sign-in that waits for its second step; without one, puts a waiting secret in force. */
export const verifyTotp: Handler<typeof AUTH_ENDPOINTS.verifyTotp> = async (request, { code, trustDevice = false }) => {
  const proof = totpProof(request, code);
  const step = await stepUnderWay(request);
  return step ? passSecondStep(request, step, 'totp', proof, trustDevice) : putInForce(request, proof, trustDevice);
};

export const verifyBackupCode: Handler<typeof AUTH_ENDPOINTS.verifyBackupCode> = async (
  request,
  { code, trustDevice = false },
) => {
  const step = await stepUnderWay(request);
  if (!step) fail('SECOND_STEP_EXPIRED');
  // Hashed before the transaction, because that takes a while.
  const other = await anyBackupCodeHash(request.runtime.pools.api, step.userId);
  const hash = other === undefined ? null : await hashBackupCode(request.passwords, code, other);
  const proof: Proof = async (tx, userId) => hash !== null && useBackupCode(tx.sql, userId, hash);
  return passSecondStep(request, step, 'backup_code', proof, trustDevice);
};

async function stepUnderWay({ runtime, cookies }: AuthRequest): Promise<SecondStep | undefined> {
  return cookies.secondStep === null ? undefined : SecondStep.live(runtime.pools.api, tokenHash(cookies.secondStep));
}

function totpProof({ runtime }: AuthRequest, code: string): Proof {
  return async (tx, userId) => {
    const row = await TwoFactor.query(tx.sql).findById(userId).forUpdate();
    if (!row) return false;
    refuseMany(row, tx.now);
    const secret = runtime.sealer.open(row.secret, { ...TOTP_SECRET, row: userId });
    const step = stepOf(secret, code, tx.now);
    if (step !== null && (await useStep(tx.sql, userId, step))) return true;
    await countWrongCode(tx.sql, userId, ACCOUNT_WINDOW_SECONDS);
    return false;
  };
}

function refuseMany({ wrongCodes, wrongSince }: TwoFactor, now: Date): void {
  if (wrongCodes < ACCOUNT_TRIES || wrongSince === null) return;
  const left = Math.ceil(ACCOUNT_WINDOW_SECONDS - (now.getTime() - wrongSince.getTime()) / 1000);
  if (left > 0) fail('SIGN_IN_RATE_LIMITED', { retryAfterSeconds: left });
}

async function passSecondStep(
  request: AuthRequest,
  { tokenHash: id, userId }: SecondStep,
  method: SignInMethod,
  proof: Proof,
  trustDevice: boolean,
): Promise<SignedIn> {
  const { runtime, call } = request;
  // A wrong code is counted and audited, so its transaction commits.
  const answer = await write(runtime, call, {}, async (tx) => {
    // The user before the step: in the order in which a change of password locks them.
    const user = await User.shared(tx.sql, userId);
    const step = user && (await SecondStep.locked(tx.sql, id));
    if (!step) fail('SECOND_STEP_EXPIRED');
    if (!(await proof(tx, user.id))) {
      await countWrong(tx, step);
      await recordAudit(tx, 'auth.sign_in_failed', targetOf(user), { method });
      return null;
    }
    await step.$query(tx.sql).delete();
    const left = method === 'backup_code' ? { backupCodesLeft: await backupCodesLeft(tx.sql, user.id) } : {};
    const trusted = await trust(tx, user.id, trustDevice);
    const { lasting } = step;
    const done = await completeSignIn({ ...tx, call: as(user, call) }, request, user, { method, ...left }, lasting);
    return { body: { user: presentUser(user) }, cookies: { ...signedInCookies(done.token, lasting), ...trusted } };
  });
  if (answer === null) fail('INVALID_CODE');
  return answer;
}

async function countWrong(tx: Tx, step: SecondStep): Promise<void> {
  const wrongCodes = step.wrongCodes + 1;
  if (wrongCodes >= STEP_TRIES) await step.$query(tx.sql).delete();
  else await step.$query(tx.sql).patch({ wrongCodes });
}

async function putInForce(request: AuthRequest, proof: Proof, trustDevice: boolean): Promise<SignedIn> {
  const { runtime, cookies, call } = request;
  const found = await findSession(runtime, cookies.session, new Date());
  if (!found) fail('SECOND_STEP_EXPIRED');
  const { id: sessionId, user_id: id, name } = found.session;
  const answer = await write(runtime, as({ id, name }, call), {}, async (tx) => {
    const user = await User.locked(tx.sql, id);
    if (!(await isLive(tx.sql, sessionId))) fail('UNAUTHORIZED');
    if (!user || user.twoFactorEnabled || !(await TwoFactor.query(tx.sql).findById(id))) fail('TWO_FACTOR_NOT_PENDING');
    if (!(await proof(tx, id))) return null;
    await User.query(tx.sql).findById(id).patch({ twoFactorEnabled: true, updatedAt: tx.now });
    await recordAudit(tx, 'account.two_factor_enable', targetOf(user));
    const body = { user: { ...presentUser(user), twoFactorEnabled: true } };
    return { body, cookies: { secondStep: 'end' as const, ...(await trust(tx, id, trustDevice)) } };
  });
  if (answer === null) fail('INVALID_CODE');
  return answer;
}

async function trust(tx: Tx, userId: string, wanted: boolean): Promise<{ trustedDevice?: CookieChange }> {
  if (!wanted) return {};
  await deleteExpiredTrustedDevices(tx.sql);
  const token = newToken();
  const expiresAt = new Date(tx.now.getTime() + LIFETIME_SECONDS.trustedDevice * 1000);
  await TrustedDevice.query(tx.sql).insert({ tokenHash: tokenHash(token), userId, expiresAt });
  return { trustedDevice: { token, lasting: true } };
}
