// Sessions of the console: a random secret in a cookie, its SHA-256 in the database, 7 days, prolonged at most once a day.
import { createHash, randomBytes } from 'node:crypto';
import type { Runtime } from '../../mixins/runtime.ts';
import type { Tx } from '../../mixins/write.ts';
import { deleteExpiredSessions, type LiveSession, liveSession, prolongSession, Session } from '../../models/session.ts';

const DAY_MS = 24 * 3600 * 1000;
const LIFETIME_MS = 7 * DAY_MS;
const TOKEN_BYTES = 32;

function tokenHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Makes a session; answers its secret. The session that the browser brought ends: a secret never survives a sign-in. */
export async function createSession(tx: Tx, userId: string, brought: string | null): Promise<string> {
  if (brought !== null)
    await Session.query(tx.sql)
      .delete()
      .where({ token_hash: tokenHash(brought) });
  await deleteExpiredSessions(tx.sql);
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  await Session.query(tx.sql).insert({
    userId,
    tokenHash: tokenHash(token),
    ip: tx.call.ip,
    userAgent: tx.call.userAgent,
    expiresAt: new Date(tx.now.getTime() + LIFETIME_MS),
  });
  return token;
}

/** The live session of a secret; `refreshed` when it was prolonged and its cookie is due again. */
export async function findSession(
  runtime: Runtime,
  token: string,
  now: Date,
): Promise<{ session: LiveSession; refreshed: boolean } | null> {
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
