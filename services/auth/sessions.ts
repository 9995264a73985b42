// Sessions of the console: a random secret in a cookie, its SHA-256 in the database, 7 days, prolonged at most once a day.
import { LIFETIME_SECONDS } from '../../contract/auth-endpoints.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  deleteSessions,
  type LiveSession,
  liveSession,
  prolongSession,
  Session,
} from '../../models/auth/session.ts';
import { endCredentials } from '../../runtime/ended-credentials.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Tx } from '../../runtime/write.ts';
import { newToken, tokenHash } from './tokens.ts';

const DAY_MS = 24 * 3600 * 1000;
const LIFETIME_MS = LIFETIME_SECONDS.session * 1000;

export interface NewSession {
  /** Its secret. */
  token: string;
  session: Session;
}

/** Makes a session. The one that the browser brought ends: a secret never survives a sign-in. */
export async function createSession(
  tx: Tx,
  userId: string,
  lasting: boolean,
  brought: string | null,
): Promise<NewSession> {
  if (brought !== null) await endSession(tx, brought);
  await deleteExpiredSessions(tx.sql);
  const token = newToken();
  const session = await Session.query(tx.sql)
    .insert({
      userId,
      tokenHash: tokenHash(token),
      ip: tx.call.ip,
      userAgent: tx.call.userAgent,
      lasting,
      expiresAt: new Date(tx.now.getTime() + LIFETIME_MS),
    })
    .returning('*');
  return { token, session };
}

/** A live session; `refreshed` when it was prolonged and its cookie is due again. */
export interface FoundSession {
  session: LiveSession;
  refreshed: boolean;
}

export async function findSession(runtime: Runtime, token: string | null, now: Date): Promise<FoundSession | null> {
  return token === null ? null : findSessionByHash(runtime, tokenHash(token), now);
}

export async function findSessionByHash({ pools }: Runtime, hash: Buffer, now: Date): Promise<FoundSession | null> {
  const sql = pools.api;
  const session = await liveSession(sql, hash);
  if (!session) return null;
  const due = new Date(now.getTime() - DAY_MS);
  if (session.refreshed_at > due) return { session, refreshed: false };
  const until = await prolongSession(sql, session.id, due, new Date(now.getTime() + LIFETIME_MS));
  return { session: { ...session, expires_at: until ?? session.expires_at }, refreshed: until !== null };
}

/** Ends the session of a secret, if there is one. */
export async function endSession(tx: Tx, token: string): Promise<void> {
  await endCredentials(tx, await deleteSession(tx.sql, tokenHash(token)));
}

/** Ends every session of the user; answers how many. */
export async function endSessions(tx: Tx, userId: string): Promise<number> {
  const ended = await deleteSessions(tx.sql, userId);
  await endCredentials(tx, ended);
  return ended.length;
}
