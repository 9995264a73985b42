// What is shown of attacks: a site's level on each node, its events, and who and what weighed most.
import type { Knex } from 'knex';
import type { SecurityEventKind } from '../../contract/resources/security.ts';
import { OF_NO_GONE_SITE } from '../bans/gone-site.ts';
import { countedUntil } from '../db/counted-logs.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';

/** Shown heavy addresses or paths, and nodes listed, at most. */
const TOP = 10;
const MAX_NODES = 2000;
const SHOWN_NODES = 10;
const SHOWN_BANS = 20;

export interface NodeLevel {
  id: string;
  name: string;
  online: boolean;
  level: number;
  paths: { path: string; level: number }[];
  reportedAt: Date | null;
}

export interface HeavyRow {
  value: string;
  count: number;
}

export interface EventRow {
  id: string;
  nodeId: string | null;
  nodeName: string | null;
  occurredAt: Date;
  kind: SecurityEventKind;
  level: number;
  previousLevel: number;
  path: string | null;
  address: string | null;
  metric: string | null;
  observed: number | null;
  threshold: number | null;
  topIps: HeavyRow[];
  topPaths: HeavyRow[];
}

const ONLINE = `s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})`;

/** Active nodes of the site's cluster by name, with what they last reported of the site. */
export async function nodeLevels(sql: Knex, site: { id: string; clusterId: string }): Promise<NodeLevel[]> {
  const { rows } = await sql.raw<{ rows: NodeLevel[] }>(
    `select n.id, n.name, coalesce(${ONLINE}, false) as online, coalesce(x.level, 0) as level,
        coalesce(x.paths, '[]') as paths, r.reported_at as "reportedAt"
       from node n left join node_state s on s.node_id = n.id
       left join node_security r on r.node_id = n.id
       left join site_security x on x.node_id = n.id and x.site_id = ?
      where n.cluster_id = ? and n.status = 'active' order by n.name, n.id limit ${MAX_NODES}`,
    [site.id, site.clusterId],
  );
  return rows;
}

/** Kinds of what weighed most, in `security_heavy`. */
export type HeavyKind = 'address' | 'path';

/**
 * Heaviest of the last hours by the sum of what their events told, of a site, or of all sites (of a cluster). The minute in
 * which the hours begin is among them.
 */
export async function heaviest(
  sql: Knex,
  kind: HeavyKind,
  { siteId, clusterId, hours }: { siteId: string | null; clusterId: string | null; hours: number },
): Promise<HeavyRow[]> {
  const { rows } = await sql.raw<{ rows: HeavyRow[] }>(
    `select h.value, sum(h.count)::float8 as count from security_heavy h
      where h.kind = :kind and h.minute >= date_trunc('minute', now() - make_interval(hours => :hours))
        ${siteId === null ? '' : 'and h.site_id = :siteId'}
        ${clusterId === null ? '' : 'and exists (select from site s where s.id = h.site_id and s.cluster_id = :clusterId)'}
      group by h.value order by 2 desc, 1 limit ${TOP}`,
    { kind, hours, ...(siteId === null ? {} : { siteId }), ...(clusterId === null ? {} : { clusterId }) } as never,
  );
  return rows;
}

/** Events of a site, newest first. The page is cut before nodes are looked up. */
export async function eventPage(
  sql: Knex,
  siteId: string,
  kind: string | undefined,
  limit: number,
  offset: number,
): Promise<EventRow[]> {
  const { rows } = await sql.raw<{ rows: EventRow[] }>(
    `select e.id, n.id as "nodeId", n.name as "nodeName", e.occurred_at as "occurredAt", e.kind, e.level,
        e.previous_level as "previousLevel", e.path, e.address, e.metric, e.observed, e.threshold,
        e.top_ips as "topIps", e.top_paths as "topPaths"
       from (select * from security_event
              where site_id = :siteId and kind <> 'waf_matched' and (:kind::text is null or kind = :kind)
              order by occurred_at desc, id desc limit :limit offset :offset) e
       left join node n on n.id = e.node_id order by e.occurred_at desc, e.id desc`,
    { siteId, kind: kind ?? null, limit, offset } as never,
  );
  return rows;
}

/** All events of a site: counted days from their numbers, the rest from the events. */
export async function eventCount(sql: Knex, siteId: string, kind: string | undefined): Promise<number> {
  const until = (await countedUntil(sql, 'security_event')) ?? new Date(0);
  const ofKind = kind === undefined ? `and kind <> 'waf_matched'` : 'and kind = :kind';
  const { rows } = await sql.raw<{ rows: { total: number }[] }>(
    `select ((select coalesce(sum(events), 0) from security_event_day
               where site_id = :siteId ${ofKind} and day < (:until::timestamptz at time zone 'UTC')::date)
           + (select count(*) from security_event
               where site_id = :siteId and kind <> 'waf_matched' ${ofKind} and occurred_at >= :until))::int as total`,
    { siteId, until, ...(kind === undefined ? {} : { kind }) } as never,
  );
  return rows[0]!.total;
}

export interface IncidentRow {
  siteId: string;
  siteName: string;
  clusterId: string;
  clusterName: string;
  level: number;
  escalatedPaths: number;
  nodes: { id: string; name: string; level: number }[];
  nodeCount: number;
  since: Date;
  requestsPerSecond: number | null;
  peakRequestsPerSecond: number | null;
  bansPerMinute: number;
  /** Sites above normal, all of them. */
  total: number;
}

/** Sites above normal on online nodes, highest level first. Costs follow these sites, not all. */
export async function incidentSites(sql: Knex, clusterId: string | null, limit: number): Promise<IncidentRow[]> {
  const { rows } = await sql.raw<{ rows: IncidentRow[] }>(
    `with above as (
       select x.site_id, max(x.level) as level, sum(jsonb_array_length(x.paths))::int as paths, min(x.since) as since,
           count(*)::int as nodes, count(*) over ()::int as total
         from site_security x join node n on n.id = x.node_id and n.status = 'active'
         join node_state s on s.node_id = n.id and ${ONLINE}
        where :clusterId::text is null or n.cluster_id = :clusterId
        group by x.site_id order by 2 desc, 4, 1 limit :limit
     ), banned as materialized (
       -- Once for all sites: where one has most of the bans, a count for each would read the table each time.
       select site_id, count(*) / 5.0 as rate from ban
        where lifted_at is null and created_at > now() - interval '5 minutes' and source = 'auto' and site_id is not null
        group by site_id)
     select a.site_id as "siteId", t.name as "siteName", c.id as "clusterId", c.name as "clusterName", a.level,
         a.paths as "escalatedPaths", l.nodes, a.nodes as "nodeCount", a.since, a.total,
         (select m.requests / 60.0 from site_minute m where m.site_id = a.site_id
           and m.minute > now() - interval '5 minutes' and m.minute < date_trunc('minute', now())
           order by m.minute desc limit 1)::float8 as "requestsPerSecond",
         -- The event that began it is as old as the level.
         (select max(e.observed) from security_event e where e.site_id = a.site_id and e.metric = 'site_qps'
           and e.occurred_at >= a.since - interval '1 minute')::float8 as "peakRequestsPerSecond",
         coalesce(b.rate, 0)::float8 as "bansPerMinute"
       from above a join site t on t.id = a.site_id join cluster c on c.id = t.cluster_id
       left join banned b on b.site_id = a.site_id
       cross join lateral (
         select jsonb_agg(jsonb_build_object('id', o.id, 'name', o.name, 'level', o.level)) as nodes from (
           select n.id, n.name, x.level from site_security x join node n on n.id = x.node_id and n.status = 'active'
             join node_state s on s.node_id = n.id and ${ONLINE}
            where x.site_id = a.site_id order by x.level desc, n.name limit ${SHOWN_NODES}) o) l
      order by a.level desc, a.since, a.site_id`,
    { clusterId, limit } as never,
  );
  return rows;
}

export interface NewestBan {
  id: string;
  siteId: string | null;
  siteName: string | null;
  nodeId: string | null;
  nodeName: string | null;
  cidr: string;
  reason: string;
  createdAt: Date;
  expiresAt: Date;
  distributed: boolean;
}

/** Newest active automatic bans. */
export async function newestAutomaticBans(sql: Knex, clusterId: string | null): Promise<NewestBan[]> {
  const { rows } = await sql.raw<{ rows: NewestBan[] }>(
    `select b.id, b.site_id as "siteId", t.name as "siteName", n.id as "nodeId", n.name as "nodeName",
        b.cidr::text, b.reason, b.created_at as "createdAt", b.expires_at as "expiresAt", b.distributed
       from (select * from ban b where source = 'auto' and lifted_at is null and expires_at > now() and ${OF_NO_GONE_SITE}
               and (:clusterId::text is null or cluster_id is null or cluster_id = :clusterId)
              order by created_at desc, id desc limit ${SHOWN_BANS}) b
       left join site t on t.id = b.site_id left join node n on n.id = b.node_id
      order by b.created_at desc, b.id desc`,
    { clusterId } as never,
  );
  return rows;
}
