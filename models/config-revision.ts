// Published revisions as people see them.
import type { Knex } from 'knex';
import type { Actor } from '../runtime/call.ts';

export interface RevisionRow {
  clusterId: string;
  clusterName: string;
  number: string;
  reason: string;
  params: Record<string, unknown>;
  actor: Actor;
  setHash: Buffer;
  entryCount: string;
  changed: { kind: string; id: string }[];
  createdAt: Date;
}

/** The newest revisions of a cluster; empty also when there is no such cluster. A history restarted shows once. */
export async function latestRevisions(sql: Knex, clusterId: string, limit: number): Promise<RevisionRow[]> {
  const { rows } = await sql.raw<{ rows: RevisionRow[] }>(
    `select r.cluster_id as "clusterId", c.name as "clusterName", number, reason, params, actor, set_hash as "setHash",
       entry_count as "entryCount", changed, r.created_at as "createdAt"
     from config_revision r join cluster c on c.id = r.cluster_id
     where r.cluster_id = ? order by r.created_at desc, epoch desc, number desc limit ?`,
    [clusterId, limit],
  );
  return rows;
}
