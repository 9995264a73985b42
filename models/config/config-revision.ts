// Published revisions as people see them.
import type { Knex } from 'knex';
import { LISTED_REVISIONS } from '../../contract/resources/revisions.ts';
import type { Actor } from '../../runtime/call.ts';

export interface RevisionRow {
  clusterId: string;
  clusterName: string;
  number: string;
  reason: string;
  params: Record<string, unknown>;
  actor: Actor;
  setHash: Buffer;
  entryCount: string;
  siteCount: string;
  canaryOnly: boolean;
  changed: { kind: string; id: string }[];
  createdAt: Date;
}

const LISTED = `from config_revision r join cluster_head h on h.cluster_id = r.cluster_id
  where r.cluster_id = ? and r.number > h.revision - ${LISTED_REVISIONS}`;

/** Listed revisions of a cluster, newest first, and how many there are; none also when there is no such cluster. */
export async function revisionPage(
  sql: Knex,
  clusterId: string,
  limit: number,
  offset: number,
): Promise<{ rows: RevisionRow[]; total: number }> {
  const { rows } = await sql.raw<{ rows: RevisionRow[] }>(
    `select r.cluster_id as "clusterId", (select name from cluster where id = r.cluster_id) as "clusterName", number,
       reason, params, actor, r.set_hash as "setHash", r.entry_count as "entryCount", r.site_count as "siteCount", not r.stable as "canaryOnly", changed,
       r.created_at as "createdAt"
     ${LISTED} order by number desc, r.epoch desc limit ? offset ?`,
    [clusterId, limit, offset],
  );
  const counted = await sql.raw<{ rows: { total: number }[] }>(`select count(*)::int as total ${LISTED}`, [clusterId]);
  return { rows, total: counted.rows[0]!.total };
}

/** Where the cluster's history is, and whether it keeps the entries of a revision; undefined: no such cluster. */
export async function revisionPlace(
  sql: Knex,
  clusterId: string,
  number: string,
): Promise<{ head: string; kept: boolean } | undefined> {
  const { rows } = await sql.raw<{ rows: { head: string; kept: boolean }[] }>(
    `select coalesce(h.revision, 0)::text as head, exists (
         select from config_revision r where r.cluster_id = c.id and r.number = ?
           and (r.number > h.revision - ${LISTED_REVISIONS} or r.number >= h.delta_floor)) as kept
       from cluster c left join cluster_head h on h.cluster_id = c.id where c.id = ?`,
    [number, clusterId],
  );
  return rows[0];
}

/** Why the latest revision of the number was published, and which entries it changed, the first 100. */
export async function revisionReason(
  sql: Knex,
  clusterId: string,
  number: string,
): Promise<Pick<RevisionRow, 'reason' | 'changed'> | undefined> {
  return sql('config_revision')
    .where({ cluster_id: clusterId, number })
    .orderBy('epoch', 'desc')
    .first('reason', 'changed');
}

/** The latest kept revision that took settings from nodes and left them saved; undefined: none. */
export async function latestRetreat(
  sql: Knex,
  clusterId: string,
): Promise<Pick<RevisionRow, 'number' | 'reason' | 'createdAt'> | undefined> {
  const { rows } = await sql.raw<{ rows: Pick<RevisionRow, 'number' | 'reason' | 'createdAt'>[] }>(
    `select r.number::text, r.reason, r.created_at as "createdAt" ${LISTED} and r.epoch = h.epoch
       and r.reason in ('rollback', 'rollout_rollback', 'change_undone') order by r.number desc limit 1`,
    [clusterId],
  );
  return rows[0];
}
