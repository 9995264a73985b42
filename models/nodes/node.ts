import type { Knex } from 'knex';
import type { NODE_SORT } from '../../contract/resources/nodes.ts';
import { BaseModel } from '../db/base.ts';
import { orderBy, type Sort } from '../db/list-order.ts';
import { NODE_ADDRESSES, type NodeAddressFact } from '../dns/facts.ts';
import { ONLINE_SECONDS } from './node-state.ts';

export class Node extends BaseModel {
  static override tableName = 'node';

  declare id: string;
  declare clusterId: string;
  declare nodeGroupId: string;
  declare name: string;
  declare status: 'active' | 'disabled';
  /** GiB; null: that of the cluster. */
  declare cacheMaxSizeGb: number | null;
  declare enrolledAt: Date;
  declare createdAt: Date;
  declare updatedAt: Date;

  static async byId(sql: Knex, id: string): Promise<Node | undefined> {
    return Node.query(sql).findById(id);
  }

  /** Locked against other writers and deletion until the end of the transaction. */
  static async locked(sql: Knex, id: string): Promise<Node | undefined> {
    return Node.query(sql).findById(id).forUpdate();
  }
}

export interface NodeFilter {
  id?: string;
  clusterId?: string | undefined;
  nodeGroupId?: string | undefined;
  status?: 'active' | 'disabled' | undefined;
  online?: boolean | undefined;
  search?: string | undefined;
  /** A capability that they do not report. */
  lacks?: string | undefined;
}

/** A node with its names, its reported state and its target. Numbers of the database are decimal strings. */
export interface NodeRow {
  id: string;
  name: string;
  cluster_id: string;
  cluster_name: string;
  node_group_id: string;
  node_group_name: string;
  region_name: string | null;
  status: 'active' | 'disabled';
  enrolled_at: Date;
  updated_at: Date;
  online: boolean;
  last_seen_at: Date | null;
  info: Record<string, unknown> | null;
  features: string[] | null;
  missing_features: string[] | null;
  metrics: Record<string, unknown> | null;
  ban_status: Record<string, unknown> | null;
  remote_address: string | null;
  auth_error: string | null;
  data_plane_healthy: boolean | null;
  message: string | null;
  epoch: string | null;
  revision: string | null;
  set_hash: Buffer | null;
  failed: { kind: string; id: string; running: boolean; reason: string }[] | null;
  target_epoch: string | null;
  target_revision: string | null;
  certificate_fingerprint: string | null;
  certificate_not_after: Date | null;
  cache_max_size_gb: number | null;
  cache_usage: Record<string, unknown> | null;
  /** Those that can be in DNS: see {@link NODE_ADDRESSES}. */
  addresses: NodeAddressFact[];
}

const FROM = `
  from node n
  join cluster c on c.id = n.cluster_id
  join node_group g on g.id = n.node_group_id
  left join region r on r.id = g.region_id
  left join node_state s on s.node_id = n.id
  left join node_target h on h.node_id = n.id`;

const ONLINE = `coalesce(s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}), false)`;

const COLUMNS = `
  select n.id, n.name, n.cluster_id, c.name as cluster_name, n.node_group_id, g.name as node_group_name,
         r.name as region_name, n.status, n.cache_max_size_gb, n.enrolled_at, n.updated_at, ${ONLINE} as online,
         s.last_seen_at, s.info, s.features, s.missing_features, s.metrics, s.ban_status, s.cache_usage, s.remote_address,
         s.auth_error, s.data_plane_healthy, s.message, s.epoch::text, s.revision::text, s.set_hash, s.failed,
         h.epoch::text as target_epoch, h.revision::text as target_revision,
         k.fingerprint as certificate_fingerprint, k.not_after as certificate_not_after, ${NODE_ADDRESSES} as addresses`;

// The newest certificate that may be used.
const CERTIFICATE = `
  left join lateral (
    select fingerprint, not_after from node_certificate
     where node_id = n.id and state = 'active' order by issued_at desc limit 1
  ) k on true`;

function conditions(filter: NodeFilter): { where: string; bindings: Record<string, string> } {
  const clauses: string[] = [];
  const bindings: Record<string, string> = {};
  const equal = (column: string, name: string, value: string | undefined): void => {
    if (value === undefined) return;
    clauses.push(`${column} = :${name}`);
    bindings[name] = value;
  };
  equal('n.id', 'id', filter.id);
  equal('n.cluster_id', 'clusterId', filter.clusterId);
  equal('n.node_group_id', 'nodeGroupId', filter.nodeGroupId);
  equal('n.status', 'status', filter.status);
  if (filter.online !== undefined) clauses.push(filter.online ? ONLINE : `not ${ONLINE}`);
  if (filter.search) {
    clauses.push(`(strpos(lower(n.name), :search) > 0 or strpos(lower(s.info->>'hostname'), :search) > 0
      or strpos(s.remote_address, :search) > 0)`);
    bindings.search = filter.search.toLowerCase();
  }
  if (filter.lacks !== undefined) {
    clauses.push(`(s.features is null or :lacks <> all(s.features))`);
    bindings.lacks = filter.lacks;
  }
  return { where: clauses.length > 0 ? `where ${clauses.join(' and ')}` : '', bindings };
}

type NodeSort = (typeof NODE_SORT)[number];

// Read of every node: there are few, and what they report changes too often for an index.
const SORT_COLUMNS: Readonly<Record<NodeSort, string>> = {
  name: 'n.name',
  lastSeenAt: `coalesce(s.last_seen_at, '-infinity')`,
  cpuPercent: `coalesce((s.metrics->>'cpuPercent')::float8, -1)`,
  memoryPercent: `coalesce(
    (s.metrics->>'memoryUsedBytes')::float8 / nullif((s.metrics->>'memoryTotalBytes')::float8, 0), -1)`,
};

/** Nodes, by name unless sorted otherwise. */
export async function nodePage(
  sql: Knex,
  filter: NodeFilter & { sort?: Sort<NodeSort> | undefined },
  limit: number,
  offset: number,
): Promise<NodeRow[]> {
  const { where, bindings } = conditions(filter);
  const order = orderBy(filter.sort ?? 'name', SORT_COLUMNS, 'n.id');
  const { rows } = await sql.raw(`${COLUMNS} ${FROM} ${CERTIFICATE} ${where} ${order} limit :limit offset :offset`, {
    ...bindings,
    limit,
    offset,
  });
  return rows;
}

export async function nodeCount(sql: Knex, filter: NodeFilter): Promise<number> {
  const { where, bindings } = conditions(filter);
  const { rows } = await sql.raw(`select count(*)::int as total ${FROM} ${where}`, bindings);
  return rows[0].total;
}
