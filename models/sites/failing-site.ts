// Sites that fail for many visitors, as connected nodes reported with their last heartbeat.
import type { Knex } from 'knex';
import type { FailureCause } from '../../contract/failure-causes.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** Failing sites that are named, at most. */
export const MAX_FAILING = 20;
/** A change so long before the first failure may be its cause. */
const BEFORE = `interval '5 minutes'`;
/** Clocks of nodes are so far off, and a failure is seen so late. */
const AFTER = `interval '15 seconds'`;

export interface FailingSite {
  id: string;
  name: string;
  clusterId: string;
  clusterName: string;
  since: Date;
  /** Share of the last minute's requests that failed, of all nodes together, in percent. */
  percent: number;
  cause: FailureCause;
  /** The site's last change before it began to fail; null: none shortly before. */
  revision: string | null;
}

/** Those for most visitors first. Reads the states of nodes, and the changes of the sites that fail alone. */
export async function failingSites(sql: Knex, clusterId: string | null): Promise<FailingSite[]> {
  const { rows } = await sql.raw<{ rows: FailingSite[] }>(
    `with told as (
       select s.id, s.name, s.cluster_id, min(f."sinceMs") as since, sum(f.requests) as requests, sum(f.failed) as failed,
           (array_agg(f.cause order by f.failed desc))[1] as cause
         from node_state t
         join node n on n.id = t.node_id and n.status = 'active'
         cross join lateral jsonb_to_recordset(t.failing_sites)
           as f("siteId" text, requests float8, failed float8, "sinceMs" float8, cause text)
         join site s on s.id = f."siteId" and s.cluster_id = n.cluster_id and s.enabled
        where t.failing_sites <> '[]' and t.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds'
          and (:clusterId::text is null or n.cluster_id = :clusterId)
        group by s.id, s.name, s.cluster_id order by sum(f.failed) desc, s.id limit ${MAX_FAILING}
     )
     select t.id, t.name, t.cluster_id as "clusterId", c.name as "clusterName", to_timestamp(t.since / 1000) as since,
         greatest(1, round(100 * t.failed / greatest(t.requests, 1)))::int as percent, t.cause, r.number::text as revision
       from told t join cluster c on c.id = t.cluster_id
       left join lateral (
         select max(g.number) as number from config_entry e
           join config_revision g on g.cluster_id = e.cluster_id and g.number = e.from_revision
          where e.owner = 'site:' || t.id and e.cluster_id = t.cluster_id
            and g.created_at between to_timestamp(t.since / 1000) - ${BEFORE} and to_timestamp(t.since / 1000) + ${AFTER}
       ) r on true
      order by t.failed desc, t.id`,
    { clusterId } as never,
  );
  return rows;
}
