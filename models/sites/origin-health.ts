// Health of origins, as nodes reported with their last heartbeat. An origin that no report names is up.
import type { Knex } from 'knex';
import type { Capability } from '../../contract/capabilities.ts';
import type { OriginFailure } from '../../contract/origin-failures.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

const CHECKS: Capability = 'active-health-v1';

/** An origin in a report. Times are Unix milliseconds by the node's clock; null: none. */
export interface ReportedOrigin {
  originId: string;
  active: boolean;
  healthy: boolean;
  failures: number;
  error: OriginFailure | null;
  status: number | null;
  failedMs: number | null;
  sinceMs: number | null;
  untilMs: number | null;
  checkedMs: number | null;
  /** Seconds between checks where they are more than the setting. */
  interval: number | null;
}

/** As node_state.origin_health holds it. */
export interface ReportedHealth {
  sites: Record<string, ReportedOrigin[]>;
  /** More origins fail than a report names. */
  cut: boolean;
}

/** What one online node says of a site. */
export interface NodeReport {
  nodeId: string;
  nodeName: string;
  reportedAt: Date;
  /** Whether the node checks origins by itself. */
  checks: boolean;
  cut: boolean;
  origins: ReportedOrigin[];
}

/** Reports of the online nodes of the site's cluster, by the name of the node, and how many nodes are active in all. */
export async function originReports(
  sql: Knex,
  clusterId: string,
  siteId: string,
): Promise<{ reports: NodeReport[]; activeNodes: number }> {
  const { rows } = await sql.raw<{ rows: (NodeReport & { online: boolean })[] }>(
    `select n.id as "nodeId", n.name as "nodeName", t.reported_at as "reportedAt", '${CHECKS}' = any(t.features) as checks,
        (t.origin_health -> 'cut')::boolean as cut, coalesce(t.origin_health -> 'sites' -> :siteId, '[]') as origins,
        coalesce(t.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds' and t.reported_at is not null, false) as online
       from node n left join node_state t on t.node_id = n.id
      where n.cluster_id = :clusterId and n.status = 'active' order by n.name, n.id`,
    { clusterId, siteId } as never,
  );
  const reports = rows.filter(({ online }) => online).map(({ online: _, ...report }) => report);
  return { reports, activeNodes: rows.length };
}
