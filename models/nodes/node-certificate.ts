// Certificates of nodes. A serial is `active` until the next one is first used (then `superseded`) or the node is
// deleted (then `revoked`); rows outlive their nodes, so a revoked serial stays known.
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { BaseModel } from '../db/base.ts';

export class NodeCertificate extends BaseModel {
  static override tableName = 'node_certificate';
  static override idColumn = 'serial';

  declare serial: string;
  declare nodeId: string | null;
  declare state: 'active' | 'superseded' | 'revoked';
  declare issuedAt: Date;
  declare notAfter: Date;
  declare firstUsedAt: Date | null;
  declare revokedAt: Date | null;
  declare fingerprint: string;

  static issuedSince(sql: Knex, nodeId: string, since: Date): Promise<number> {
    return NodeCertificate.query(sql).where({ node_id: nodeId }).where('issued_at', '>', since).resultSize();
  }

  static async revokeAll(sql: Knex, nodeId: string, now: Date): Promise<void> {
    await NodeCertificate.query(sql)
      .patch({ state: 'revoked', revokedAt: now })
      .where({ node_id: nodeId })
      .whereNot('state', 'revoked');
  }
}

/** What the node channel must know of a serial. */
export interface CertificateState {
  serial: string;
  state: 'active' | 'superseded' | 'revoked';
  notAfter: Date;
  /** Whether it was ever used. */
  used: boolean;
  nodeId: string | null;
  /** Null when the node is gone, as are the fields below. */
  clusterId: string | null;
  name: string | null;
  status: 'active' | 'disabled' | null;
  features: string[];
}

/** By serial; unknown ones are absent. */
export async function certificateStates(
  pool: Pick<Pool, 'query'>,
  serials: readonly string[],
): Promise<Map<string, CertificateState>> {
  const { rows } = await pool.query<CertificateState>({
    name: 'certificate-states',
    text: `select k.serial, k.state, k.not_after as "notAfter", k.first_used_at is not null as used,
        k.node_id as "nodeId", n.cluster_id as "clusterId", n.name, n.status, coalesce(s.features, '{}') as features
      from node_certificate k
      left join node n on n.id = k.node_id
      left join node_state s on s.node_id = n.id
      where k.serial = any($1::text[])`,
    values: [serials],
  });
  return new Map(rows.map((row) => [row.serial, row]));
}

/** Why a certificate cannot be used, by serial; those that can are absent. */
export async function certificateTroubles(
  pool: Pick<Pool, 'query'>,
  serials: readonly string[],
): Promise<Map<string, 'unknown' | 'superseded' | 'revoked' | 'deleted' | 'disabled'>> {
  const { rows } = await pool.query<{
    serial: string;
    trouble: 'unknown' | 'superseded' | 'revoked' | 'deleted' | 'disabled';
  }>({
    name: 'certificate-troubles',
    text: `select asked.serial, case
          when k.serial is null then 'unknown' when k.state <> 'active' then k.state
          when n.id is null then 'deleted' else n.status end as trouble
      from unnest($1::text[]) as asked(serial)
      left join node_certificate k on k.serial = asked.serial
      left join node n on n.id = k.node_id
      where k.state is distinct from 'active' or n.status is distinct from 'active'`,
    values: [serials],
  });
  return new Map(rows.map(({ serial, trouble }) => [serial, trouble]));
}

/** The first use of a certificate ends the ones issued to the node before it. */
export async function markFirstUse(pool: Pick<Pool, 'query'>, serial: string): Promise<void> {
  await pool.query({
    name: 'certificate-first-use',
    text: `with used as (
        update node_certificate set first_used_at = now()
         where serial = $1 and state = 'active' and first_used_at is null
         returning node_id, issued_at
      )
      update node_certificate k set state = 'superseded' from used
       where k.node_id = used.node_id and k.serial <> $1 and k.state = 'active' and k.issued_at <= used.issued_at`,
    values: [serial],
  });
}
