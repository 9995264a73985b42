// What names follow: nodes of a cluster, whether visitors can be sent to them, and at which addresses.
import type { Knex } from 'knex';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** After a publication, nodes that were current before keep their place for so long. */
const GRACE = `interval '2 minutes'`;

export interface NodeAddressFact {
  address: string;
  level: number;
  source: 'reported' | 'configured';
}

export interface DnsNodeFact {
  id: string;
  name: string;
  clusterId: string;
  groupId: string;
  active: boolean;
  /** Active, with a recent heartbeat, a working data plane and its target revision. */
  healthy: boolean;
  /** Configured ones, else those that it reported. */
  addresses: NodeAddressFact[];
}

/** SQL: addresses of node `n` that can be in DNS: configured ones, by level; without any, all that it reported. */
export const NODE_ADDRESSES = `(
  select coalesce(jsonb_agg(jsonb_build_object('address', host(a.address), 'level', a.level, 'source', a.source)
           order by a.level, family(a.address), a.address), '[]')
    from node_address a
   where a.node_id = n.id and a.source = case
     when exists (select from node_address o where o.node_id = n.id and o.source = 'configured') then 'configured'
     else 'reported' end)`;

const HEALTHY = `coalesce(n.status = 'active' and s.data_plane_healthy
  and s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})
  and s.epoch = t.epoch and (
    (s.track = t.track and s.revision = t.revision)
    or (select min(r.created_at) from config_revision r
         where r.cluster_id = n.cluster_id and r.epoch = t.epoch and r.number > s.revision
           and (t.track = 'C' or r.stable)) > now() - ${GRACE}), false)`;

/** Of the clusters. */
export async function dnsNodes(sql: Knex, clusterIds: readonly string[]): Promise<DnsNodeFact[]> {
  const { rows } = await sql.raw<{ rows: DnsNodeFact[] }>(
    `select n.id, n.name, n.cluster_id as "clusterId", n.node_group_id as "groupId", n.status = 'active' as active,
            ${HEALTHY} as healthy, ${NODE_ADDRESSES} as addresses
       from node n left join node_state s on s.node_id = n.id left join node_target t on t.node_id = n.id
      where n.cluster_id = any(?::text[]) order by n.id`,
    [clusterIds as never],
  );
  return rows;
}

export interface DnsSite {
  id: string;
  name: string;
}

/** Sites with a domain, oldest first. */
export async function dnsSites(sql: Knex, clusterId: string, limit: number): Promise<DnsSite[]> {
  const { rows } = await sql.raw<{ rows: DnsSite[] }>(
    `select s.id, s.name from site s
      where s.cluster_id = ? and exists (select from site_domain d where d.site_id = s.id) order by s.id limit ?`,
    [clusterId, limit],
  );
  return rows;
}
