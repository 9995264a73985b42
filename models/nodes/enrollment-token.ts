// One-time tokens with which nodes join. Only SHA-256 and the first characters of a token are kept.
import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';
import { ONLINE_SECONDS } from './node-state.ts';

export class EnrollmentToken extends BaseModel {
  static override tableName = 'enrollment_token';

  declare id: string;
  declare clusterId: string;
  declare nodeGroupId: string | null;
  declare nodeName: string | null;
  declare prefix: string;
  declare secretHash: Buffer;
  declare createdAt: Date;
  declare expiresAt: Date;
  declare usedAt: Date | null;
  declare nodeId: string | null;

  static async byHash(sql: Knex, secretHash: Buffer): Promise<EnrollmentToken | undefined> {
    return EnrollmentToken.query(sql).findOne({ secret_hash: secretHash });
  }

  /** The token with this hash, locked: two enrollments with one token run one after the other. */
  static async lockedByHash(sql: Knex, secretHash: Buffer): Promise<EnrollmentToken | undefined> {
    return EnrollmentToken.query(sql).findOne({ secret_hash: secretHash }).forUpdate();
  }
}

export interface EnrollmentProgressRow {
  id: string;
  cluster_id: string;
  expires_at: Date;
  used_at: Date | null;
  node_id: string | null;
  node_name: string | null;
  online: boolean;
  applied: boolean;
  auth_error: string | null;
}

/** How far the enrollment with a token has come. */
export async function enrollmentProgress(sql: Knex, id: string): Promise<EnrollmentProgressRow | undefined> {
  const { rows } = await sql.raw(
    `select t.id, t.cluster_id, t.expires_at, t.used_at, n.id as node_id, n.name as node_name, s.auth_error,
            coalesce(s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}), false) as online,
            coalesce(s.epoch = h.epoch and s.revision = h.revision, false) as applied
       from enrollment_token t
       left join node n on n.id = t.node_id
       left join node_state s on s.node_id = n.id
       left join node_target h on h.node_id = n.id
      where t.id = :id`,
    { id },
  );
  return rows[0];
}
