import type { Knex } from 'knex';
import { ONLINE_SECONDS } from './node-state.ts';

/**
 * Primary addresses (level 0) of each online active node of the cluster, as texts without prefix length. Where the console saw a node from
 * (source remote) is not among them: it may be a proxy's.
 */
export async function edgeAddresses(
  sql: Knex,
  clusterId: string,
): Promise<{ configured: string[]; reported: string[] }[]> {
  const { rows } = await sql.raw(
    `select coalesce(array_agg(host(a.address)) filter (where a.source = 'configured' and a.level = 0), '{}') as configured,
            coalesce(array_agg(host(a.address)) filter (where a.source = 'reported'), '{}') as reported
       from node n
       join node_state s on s.node_id = n.id
       join node_address a on a.node_id = n.id
      where n.cluster_id = ? and n.status = 'active' and s.last_seen_at > now() - make_interval(secs => ?)
      group by n.id order by n.id`,
    [clusterId, ONLINE_SECONDS],
  );
  return rows;
}
