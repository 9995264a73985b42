// Health of origins, as nodes reported with their last heartbeat. An origin that no report names is up.
import type { Knex } from 'knex';
import type { Capability } from '../../contract/capabilities.ts';
import type { OriginFailure } from '../../contract/origin-failures.ts';
import { subjectIds } from '../alerts/alert.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import type { ReportedTraffic } from './origin-traffic.ts';

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
  traffic: ReportedTraffic[];
}

/** A cluster with origins that are down on many of its nodes. */
export interface DownOrigins {
  clusterId: string;
  clusterName: string;
  /** How many origins. */
  count: number;
  since: Date | null;
  /** Some of their sites. */
  named: { id: string; name: string }[];
  /** Ids of their sites, as `subjectIds` reads them. */
  subjects: string[];
}

/** Nodes of a cluster whose reports are looked at: what most nodes see, some see. */
const ASKED_NODES = 20;
/** Sites that are named. */
const NAMED_SITES = 5;

/** Origins of enabled sites that are down on at least half of the online nodes, as far as these are asked. */
export async function downOrigins(sql: Knex, clusterId: string | null): Promise<DownOrigins[]> {
  const { rows } = await sql.raw<{ rows: DownOrigins[] }>(
    `with online as (
       select n.cluster_id, t.origin_health -> 'sites' as sites,
           row_number() over (partition by n.cluster_id order by n.id) as place
         from node_state t join node n on n.id = t.node_id and n.status = 'active'
        where t.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds'
          and (:clusterId::text is null or n.cluster_id = :clusterId)
     ), asked as (
       select cluster_id, sites, place, count(*) over (partition by cluster_id) as nodes
         from online where place <= ${ASKED_NODES}
     ), down as (
       select a.cluster_id, o.key as site_id, e."originId", min(e."sinceMs") as since
         from asked a
         cross join lateral jsonb_each(a.sites) o
         cross join lateral jsonb_to_recordset(o.value) as e("originId" text, healthy boolean, "sinceMs" float8)
        where a.sites <> '{}' and not e.healthy
        group by 1, 2, 3, a.nodes having count(distinct a.place) * 2 >= a.nodes
     )
     select d.cluster_id as "clusterId", c.name as "clusterName", count(*)::int as count,
         to_timestamp(min(d.since) / 1000) as since,
         (jsonb_agg(distinct jsonb_build_object('id', s.id, 'name', s.name))) as named, ${subjectIds('s.id')} as subjects
       from down d join cluster c on c.id = d.cluster_id
       join site s on s.id = d.site_id and s.cluster_id = d.cluster_id and s.enabled
      group by 1, 2 order by 3 desc, 1`,
    { clusterId } as never,
  );
  return rows.map((row) => ({ ...row, named: row.named.slice(0, NAMED_SITES) }));
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
        coalesce(t.origin_traffic -> :siteId, '[]') as traffic,
        coalesce(t.last_seen_at > now() - interval '${ONLINE_SECONDS} seconds' and t.reported_at is not null, false) as online
       from node n left join node_state t on t.node_id = n.id
      where n.cluster_id = :clusterId and n.status = 'active' order by n.name, n.id`,
    { clusterId, siteId } as never,
  );
  const reports = rows.filter(({ online }) => online).map(({ online: _, ...report }) => report);
  return { reports, activeNodes: rows.length };
}
