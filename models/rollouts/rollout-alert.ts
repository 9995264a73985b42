// Clusters whose last canary failed, or whose last change had none.
import type { Knex } from 'knex';

export interface RolloutAlert {
  clusterId: string;
  kind: 'config_rollout_failed' | 'config_rollout_no_canary';
}

/** Of clusters that try changes out: what the last event of each sort was. */
export async function rolloutAlerts(sql: Knex, limit: number): Promise<RolloutAlert[]> {
  const last = (kinds: readonly string[]) => `(select e.kind from rollout_event e
    where e.cluster_id = r.cluster_id and e.kind in (${kinds.map((kind) => `'${kind}'`).join(', ')})
    order by e.at desc, e.id desc limit 1)`;
  const { rows } = await sql.raw<{ rows: RolloutAlert[] }>(
    `select r.cluster_id as "clusterId", a.kind
       from cluster_rollout r cross join lateral (values
         ('config_rollout_failed', ${last(['rolled_back', 'promoted'])} = 'rolled_back'),
         ('config_rollout_no_canary', ${last(['direct', 'started'])} = 'direct')) as a(kind, holds)
      where r.enabled and a.holds order by 1, 2 limit ?`,
    [limit],
  );
  return rows;
}
