import type { LiveSession, Session } from '../../models/auth/session.ts';
import type { User } from '../../models/auth/user.ts';

export function presentUser({ id, name, email, twoFactorEnabled }: User) {
  return { id, name, email, twoFactorEnabled };
}

/** What get-session answers; never the secret. */
export function presentSession(row: LiveSession) {
  return {
    session: {
      id: row.id,
      userId: row.user_id,
      createdAt: row.created_at.toISOString(),
      expiresAt: row.expires_at.toISOString(),
    },
    user: { id: row.user_id, name: row.name, email: row.email, twoFactorEnabled: row.two_factor_enabled },
  };
}

/** The same of a session that was made just now. */
export function presentNewSession({ id, userId, createdAt, expiresAt }: Session, user: User) {
  return {
    session: { id, userId, createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() },
    user: presentUser(user),
  };
}
