import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';

export class Session extends BaseModel {
  static override tableName = 'session';

  declare id: string;
  declare userId: string;
  declare tokenHash: Buffer;
  declare ip: string | null;
  declare userAgent: string | null;
  declare lasting: boolean;
  declare createdAt: Date;
  declare refreshedAt: Date;
  declare expiresAt: Date;
}

/** A live session with its user. */
export interface LiveSession {
  id: string;
  created_at: Date;
  refreshed_at: Date;
  expires_at: Date;
  /** false: its cookie ends with the browser. */
  lasting: boolean;
  user_id: string;
  name: string;
  email: string;
  two_factor_enabled: boolean;
  /** Of its life, in milliseconds. */
  remaining: number;
}

export async function liveSession(sql: Knex, tokenHash: Buffer): Promise<LiveSession | undefined> {
  const { rows } = await sql.raw(
    `select s.id, s.created_at, s.refreshed_at, s.expires_at, s.lasting,
            extract(epoch from s.expires_at - now())::float8 * 1000 as remaining,
            u.id as user_id, u.name, u.email, u.two_factor_enabled
       from session s join "user" u on u.id = s.user_id
      where s.token_hash = ? and s.expires_at > now()`,
    [tokenHash],
  );
  return rows[0];
}

/** Hashes (hexadecimal) of those that are live. */
export async function liveTokenHashes(sql: Knex, tokenHashes: readonly Buffer[]): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { hash: string }[] }>(
    `select encode(token_hash, 'hex') as hash from session where token_hash = any(?) and expires_at > now()`,
    [tokenHashes as never],
  );
  return new Set(rows.map(({ hash }) => hash));
}

/** Whether a session is still live, for changes that a change of password could have overtaken. */
export async function isLive(sql: Knex, id: string): Promise<boolean> {
  return (await Session.query(sql).findById(id).whereRaw('expires_at > now()')) !== undefined;
}

/** Prolongs a session that was last prolonged before `before`; answers its new end, or null when it was not due. */
export async function prolongSession(sql: Knex, id: string, before: Date, until: Date): Promise<Date | null> {
  const { rows } = await sql.raw(
    'update session set refreshed_at = now(), expires_at = ? where id = ? and refreshed_at < ? returning expires_at',
    [until, id, before],
  );
  return (rows[0] as { expires_at: Date } | undefined)?.expires_at ?? null;
}

export async function deleteExpiredSessions(sql: Knex): Promise<void> {
  await sql.raw('delete from session where expires_at < now()');
}

/** Ends the user's sessions; answers the hashes of their secrets. */
export async function deleteSessions(sql: Knex, userId: string): Promise<Buffer[]> {
  return (await Session.query(sql).delete().where({ user_id: userId }).returning('*')).map(hashOf);
}

/** Ends the session of a secret, if there is one; answers the hash of its secret. */
export async function deleteSession(sql: Knex, tokenHash: Buffer): Promise<Buffer[]> {
  return (await Session.query(sql).delete().where({ token_hash: tokenHash }).returning('*')).map(hashOf);
}

function hashOf({ tokenHash }: Session): Buffer {
  return tokenHash;
}
