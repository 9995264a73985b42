import type { Knex } from 'knex';
import { BaseModel } from './base.ts';

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
  region_id: string | null;
  region_name: string | null;
  region_code: string | null;
  nodes: number;
  created_at: Date;
  updated_at: Date;
}

const SUMMARY = `
  select g.id, g.cluster_id, g.name, g.is_default, g.is_canary, g.region_id, r.name as region_name,
         r.code as region_code, g.created_at, g.updated_at,
         (select count(*)::int from node n where n.node_group_id = g.id) as nodes
    from node_group g left join region r on r.id = g.region_id`;

/** Groups by name, of one cluster or of all. */
export async function nodeGroupPage(
  sql: Knex,
  clusterId: string | undefined,
  limit: number,
  offset: number,
): Promise<NodeGroupSummary[]> {
  const where = clusterId === undefined ? '' : 'where g.cluster_id = :clusterId';
  const { rows } = await sql.raw(`${SUMMARY} ${where} order by g.name, g.id limit :limit offset :offset`, {
    ...(clusterId === undefined ? {} : { clusterId }),
    limit,
    offset,
  });
  return rows;
}

export async function nodeGroupSummary(sql: Knex, id: string): Promise<NodeGroupSummary | undefined> {
  const { rows } = await sql.raw(`${SUMMARY} where g.id = :id`, { id });
  return rows[0];
}

export async function nodeGroupCount(sql: Knex, clusterId: string | undefined): Promise<number> {
  const query = NodeGroup.query(sql);
  return clusterId === undefined ? query.resultSize() : query.where({ cluster_id: clusterId }).resultSize();
}
