// Sessions of the console: a random secret in a cookie, its SHA-256 in the database, 7 days, prolonged at most once a day.
import { LIFETIME_SECONDS } from '../../contract/auth-endpoints.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import type { Tx } from '../../mixins/write.ts';
import { deleteExpiredSessions, type LiveSession, liveSession, prolongSession, Session } from '../../models/session.ts';
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
  if (brought !== null)
    await Session.query(tx.sql)
      .delete()
      .where({ token_hash: tokenHash(brought) });
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

/** The live session of a secret; `refreshed` when it was prolonged and its cookie is due again. */
export async function findSession(
  runtime: Runtime,
  token: string | null,
  now: Date,
): Promise<{ session: LiveSession; refreshed: boolean } | null> {
  if (token === null) return null;
  const sql = runtime.pools.api;
  const session = await liveSession(sql, tokenHash(token));
  if (!session) return null;
  const due = new Date(now.getTime() - DAY_MS);
  if (session.refreshed_at > due) return { session, refreshed: false };
  const until = await prolongSession(sql, session.id, due, new Date(now.getTime() + LIFETIME_MS));
  return { session: { ...session, expires_at: until ?? session.expires_at }, refreshed: until !== null };
}

export async function endSession(runtime: Runtime, token: string): Promise<void> {
  await Session.query(runtime.pools.api)
    .delete()
    .where({ token_hash: tokenHash(token) });
}
