// What other settings would have done in the last hour, as far as nodes reported it. Reads only, a bounded number of rows.
import type { Knex } from 'knex';
import { LATEST_MINUTE } from './site-request-minute.ts';

/** Newest events looked at. */
const MOST_EVENTS = 2000;
/** Sites that follow the template, looked at. */
const MOST_SITES = 5000;
/**
 * Counts of heavy clients and paths are halved every five seconds at the node: one that keeps its rate has up to ten
 * seconds' worth of requests, so a tenth of its count is no more than what it asked in a second.
 */
const HEAVY_SECONDS = 10;

const LAST_HOUR = `now() - interval '1 hour'`;

/** Sites that follow the template with their policy on, at most 5000. */
export async function followers(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `select site_id as id from site_protection where follows_template order by site_id limit ${MOST_SITES}`,
  );
  return rows.map(({ id }) => id);
}

/** Limits that rates are compared with, per second; 0 is none. */
export interface Rates {
  ipQps: number;
  urlQps: number;
  originErrorPercent: number;
}

/** Distinct ones, above the given limits and as they were. */
export interface EventFigures {
  events: number;
  errorEvents: number;
  clients: number;
  clientsWere: number;
  paths: number;
  pathsWere: number;
  sitesWere: number;
  erring: number;
  erringWere: number;
}

/** What the events of the last hour of these sites tell. */
export async function eventFigures(sql: Knex, siteIds: readonly string[], rates: Rates): Promise<EventFigures> {
  const { rows } = await sql.raw<{ rows: EventFigures[] }>(
    `with e as materialized (
       select site_id, kind, level > previous_level as raised, path, address, metric, observed, top_ips, top_paths
         from security_event where site_id = any(:siteIds) and occurred_at > ${LAST_HOUR}
        order by occurred_at desc limit ${MOST_EVENTS}
     ), clients as (
       select address from e where metric = 'ip_qps' and observed > :ipQps
       union select h.value from e cross join jsonb_to_recordset(e.top_ips) as h(value text, count float8)
         where h.count / ${HEAVY_SECONDS} > :ipQps
     ), paths as (
       select site_id, path from e where metric = 'url_qps' and observed > :urlQps
       union select e.site_id, h.value from e cross join jsonb_to_recordset(e.top_paths) as h(value text, count float8)
         where h.count / ${HEAVY_SECONDS} > :urlQps
     )
     select (select count(*) from e)::int as events,
       (select count(*) from e where metric = 'origin_error_rate')::int as "errorEvents",
       (select count(*) from clients)::int as clients,
       (select count(distinct address) from e where metric = 'ip_qps')::int as "clientsWere",
       (select count(*) from paths)::int as paths,
       (select count(distinct (site_id, path)) from e where kind = 'path_level' and raised)::int as "pathsWere",
       (select count(distinct site_id) from e where metric = 'site_qps' and raised)::int as "sitesWere",
       (select count(distinct site_id) from e
         where metric = 'origin_error_rate' and observed > :originErrorPercent)::int as erring,
       (select count(distinct site_id) from e where metric = 'origin_error_rate' and raised)::int as "erringWere"`,
    { siteIds, ...rates } as never,
  );
  return rows[0]!;
}

/**
 * Sites above a rate for so many minutes in a row. Nodes count by themselves, and what is known is their sum: it is above
 * the rate of each when it is above all of them together, since one of them then was. Null when no node of their
 * clusters has reported requests.
 */
export async function sitesAbove(
  sql: Knex,
  siteIds: readonly string[],
  siteQps: number,
  minutes: number,
): Promise<number | null> {
  const { rows } = await sql.raw<{ rows: { reported: boolean; count: number }[] }>(
    `with s as (
       select t.id, t.cluster_id, 60.0 * :siteQps::int * greatest(coalesce(n.nodes, 0), 1) as most from site t
         left join (select cluster_id, count(*) as nodes from node where status = 'active' group by 1) n using (cluster_id)
        where t.id = any(:siteIds)
     ), above as (
       select m.site_id, m.minute - interval '1 minute' * row_number() over (partition by m.site_id order by m.minute) as run
         from s cross join lateral (select site_id, minute, requests from site_minute where site_id = s.id
           and minute > ${LATEST_MINUTE} - interval '1 hour' and minute <= ${LATEST_MINUTE}) m
        where m.requests > s.most
     )
     select exists (select from cluster_request_minute where minute > ${LAST_HOUR}
         and cluster_id in (select cluster_id from s)) as reported,
       (select count(distinct site_id) from (
         select site_id from above group by site_id, run having count(*) >= :minutes) r)::int as count`,
    { siteIds, siteQps, minutes } as never,
  );
  const { reported, count } = rows[0]!;
  return reported ? count : null;
}

export interface BanLengths {
  /** Bans of clients over their rate, made in the last hour, that had ended by now with the given length. */
  ended: number;
  endedWere: number;
}

export async function banLengths(sql: Knex, siteIds: readonly string[], seconds: number): Promise<BanLengths> {
  const { rows } = await sql.raw<{ rows: BanLengths[] }>(
    `select count(*) filter (where lifted_at is not null or created_at + make_interval(secs => :seconds) <= now())::int as ended,
        count(*) filter (where lifted_at is not null or expires_at <= now())::int as "endedWere"
       from ban where site_id = any(:siteIds) and source = 'auto' and reason = 'cc_ip_rate' and created_at > ${LAST_HOUR}`,
    { siteIds, seconds } as never,
  );
  return rows[0]!;
}

/** Beginnings and ends of manual bans in an hour that are looked at; nobody makes more by hand. */
const MOST_STEPS = 20_000;

export interface BanHistory {
  /** Active manual bans when the hour began. */
  before: number;
  /** What came after, in its order. */
  steps: { id: string; ends: boolean }[];
}

/** How manual bans came and went in the last hour; rows live for an hour after the end of their ban. */
export async function manualBanHistory(sql: Knex): Promise<BanHistory> {
  const { rows } = await sql.raw<{ rows: BanHistory[] }>(
    `with b as materialized (
       select id, created_at, least(lifted_at, expires_at) as ended_at from ban
        where source = 'manual' and expires_at > ${LAST_HOUR} and (lifted_at is null or lifted_at > ${LAST_HOUR})
     ), steps as (
       select id, false as ends, created_at as at from b where created_at > ${LAST_HOUR}
       union all select id, true, ended_at from b where ended_at <= now()
       order by at, ends desc, id limit ${MOST_STEPS}
     )
     select (select count(*) from b where created_at <= ${LAST_HOUR})::int as before,
       (select coalesce(jsonb_agg(jsonb_build_object('id', id, 'ends', ends) order by at, ends desc, id), '[]')
         from steps) as steps`,
  );
  return rows[0]!;
}

/** Automatic bans made in the last hour: all, and those that stayed on one node. */
export async function automaticBans(sql: Knex): Promise<{ made: number; unshared: number }> {
  const { rows } = await sql.raw<{ rows: { made: number; unshared: number }[] }>(
    `select count(*)::int as made, count(*) filter (where not distributed)::int as unshared
       from ban where source = 'auto' and created_at > ${LAST_HOUR}`,
  );
  return rows[0]!;
}
