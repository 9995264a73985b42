import type { Knex } from 'knex';
import { BaseModel } from '../db/base.ts';
import { searchPattern } from '../db/search-pattern.ts';

export class NodeGroup extends BaseModel {
  static override tableName = 'node_group';

  declare id: string;
  declare clusterId: string;
  declare name: string;
  declare isDefault: boolean;
  declare isCanary: boolean;
  declare regionId: string | null;
  declare createdAt: Date;
  declare updatedAt: Date;

  static async byId(sql: Knex, id: string): Promise<NodeGroup | undefined> {
    return NodeGroup.query(sql).findById(id);
  }

  /** Locked against other writers and deletion until the end of the transaction. */
  static async locked(sql: Knex, id: string): Promise<NodeGroup | undefined> {
    return NodeGroup.query(sql).findById(id).forUpdate();
  }

  /** The group new nodes of a cluster go to; every cluster has exactly one. */
  static async defaultOf(sql: Knex, clusterId: string): Promise<NodeGroup | undefined> {
    return NodeGroup.query(sql).findOne({ cluster_id: clusterId, is_default: true });
  }
}

export interface NodeGroupSummary {
  id: string;
  cluster_id: string;
  name: string;
  is_default: boolean;
  is_canary: boolean;
  canary_in_effect: boolean;
  region_id: string | null;
  region_name: string | null;
  region_code: string | null;
  nodes: number;
  created_at: Date;
  updated_at: Date;
}

const SUMMARY = `
  select g.id, g.cluster_id, g.name, g.is_default, g.is_canary,
         coalesce(o.enabled, false) as canary_in_effect, g.region_id, r.name as region_name,
         r.code as region_code, g.created_at, g.updated_at,
         (select count(*)::int from node n where n.node_group_id = g.id) as nodes
    from node_group g left join region r on r.id = g.region_id
    left join cluster_rollout o on o.cluster_id = g.cluster_id`;

export interface NodeGroupFilter {
  clusterId?: string | undefined;
  /** Part of the name. */
  search?: string | undefined;
}

function conditions({ clusterId, search }: NodeGroupFilter): { where: string; bindings: Record<string, string> } {
  const bindings: Record<string, string> = { pattern: searchPattern(search) };
  const where = 'where lower(g.name) like lower(:pattern)';
  if (clusterId === undefined) return { where, bindings };
  return { where: `${where} and g.cluster_id = :clusterId`, bindings: { ...bindings, clusterId } };
}

/** Groups by name, of one cluster or of all. */
export async function nodeGroupPage(
  sql: Knex,
  filter: NodeGroupFilter,
  limit: number,
  offset: number,
): Promise<NodeGroupSummary[]> {
  const { where, bindings } = conditions(filter);
  const { rows } = await sql.raw(`${SUMMARY} ${where} order by g.name, g.id limit :limit offset :offset`, {
    ...bindings,
    limit,
    offset,
  });
  return rows;
}

export async function nodeGroupSummary(sql: Knex, id: string): Promise<NodeGroupSummary | undefined> {
  const { rows } = await sql.raw(`${SUMMARY} where g.id = :id`, { id });
  return rows[0];
}

export async function nodeGroupCount(sql: Knex, filter: NodeGroupFilter): Promise<number> {
  const { where, bindings } = conditions(filter);
  const { rows } = await sql.raw(`select count(*)::int as total from node_group g ${where}`, bindings);
  return rows[0].total;
}
