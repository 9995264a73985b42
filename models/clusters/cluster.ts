import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';
import { searchPattern } from '../db/search-pattern.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

export class Cluster extends BaseModel {
  static override tableName = 'cluster';

  declare id: string;
  declare name: string;
  declare description: string;
  declare createdAt: Date;
  declare updatedAt: Date;

  static async byId(sql: Knex, id: string): Promise<Cluster | undefined> {
    return Cluster.query(sql).findById(id);
  }

  /** Locked against other writers and deletion until the end of the transaction. */
  static async locked(sql: Knex, id: string): Promise<Cluster | undefined> {
    return Cluster.query(sql).findById(id).forNoKeyUpdate();
  }
}

/** A cluster with what lists show of it. Numbers of the database are decimal strings. */
export interface ClusterSummary {
  id: string;
  name: string;
  description: string;
  client_ip_mode: string;
  cache_zone: object | null;
  created_at: Date;
  updated_at: Date;
  latest_revision: string;
  nodes: number;
  online: number;
  live: number;
  applied: number;
  sites: number;
}

// The page is cut before anything is counted, so the cost follows the page and not the number of clusters.
const SUMMARY = `
  select c.id, c.name, c.description, c.created_at, c.updated_at,
         coalesce(c.client_ip->>'mode', 'direct') as client_ip_mode, c.cache_zone,
         coalesce(h.revision, 0)::text as latest_revision, n.*,
         (select count(*)::int from site s where s.cluster_id = c.id) as sites
    from (select * from cluster :where: order by name limit :limit offset :offset) c
    left join cluster_head h on h.cluster_id = c.id
    left join lateral (
      select count(*)::int as nodes,
             count(*) filter (where s.online)::int as online,
             count(*) filter (where s.online and n.status = 'active')::int as live,
             count(*) filter (where s.online and n.status = 'active' and s.on_target)::int as applied
        from node n
        left join lateral (
          select s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}) as online,
                 s.epoch = t.epoch and s.track = t.track and s.revision = t.revision as on_target
            from node_state s join node_target t on t.node_id = s.node_id where s.node_id = n.id
        ) s on true
       where n.cluster_id = c.id
    ) n on true
   order by c.name`;

/** Clusters by name whose name, of small letters always, has the text in it, with counts. */
export async function clusterPage(
  sql: Knex,
  search: string | undefined,
  limit: number,
  offset: number,
): Promise<ClusterSummary[]> {
  const pattern = searchPattern(search);
  const { rows } = await sql.raw(SUMMARY.replace(':where:', 'where name like lower(:pattern)'), {
    pattern,
    limit,
    offset,
  });
  return rows;
}

/** One cluster with counts. */
export async function clusterSummary(sql: Knex, id: string): Promise<ClusterSummary | undefined> {
  const { rows } = await sql.raw(SUMMARY.replace(':where:', 'where id = :id'), { id, limit: 1, offset: 0 });
  return rows[0];
}

/** How many clusters there are; with an id 1, or 0 where there is none of it. */
export async function clusterCount(sql: Knex, id: string | null = null): Promise<number> {
  const { rows } = await sql.raw('select count(*)::int as total from cluster where ?::text is null or id = ?', [
    id,
    id,
  ] as never);
  return rows[0].total;
}

/** How many clusters have the text in their name. */
export async function clustersFound(sql: Knex, search: string | undefined): Promise<number> {
  const pattern = searchPattern(search);
  const { rows } = await sql.raw('select count(*)::int as total from cluster where name like lower(:pattern)', {
    pattern,
  });
  return rows[0].total;
}

/**
 * Keeps the cluster until the end of the transaction and answers its name; undefined when it is gone. For who publishes without a site or setting
 * of the cluster being locked: its deletion locks the cluster and then its head, and so must he.
 */
export async function keepCluster(sql: Knex, id: string): Promise<string | undefined> {
  const { rows } = await sql.raw('select name from cluster where id = ? for key share', [id]);
  return rows[0]?.name;
}

/** What keeps a cluster from being deleted. */
export async function clusterContent(sql: Knex, id: string): Promise<{ nodes: number; sites: number }> {
  const { rows } = await sql.raw(
    `select (select count(*)::int from node where cluster_id = :id) as nodes,
            (select count(*)::int from site where cluster_id = :id) as sites`,
    { id },
  );
  return rows[0];
}
