// How much of the requests of sites the WAF takes for attacks, and who is told where that jumps: an event and an open alert.
import type { Knex } from 'knex';
import { MAX_NAMED } from '../../contract/resources/overview.ts';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { LIVE } from '../db/live-hint.ts';
import { MAX_CLUSTERS } from '../overview/overview.ts';

const KIND = 'waf_share';
/** After an alert began or ended, a site has no other one for so long. */
const QUIET = `interval '15 minutes'`;

const ATTACKS = `coalesce(sum(coalesce((counts ->> 'waf.attack')::bigint, 0)
  + coalesce((counts ->> 'blocked.waf')::bigint, 0)), 0)::float8`;

export interface WafShareRow {
  siteId: string;
  requests: number;
  attacks: number;
  /** Percent from which on the open alert goes on; null without one. */
  open: number | null;
  /** When the site's mode became what it is; null where nothing was saved, and of a site that is gone. */
  modeSince: Date | null;
}

/**
 * Sites in which rules of the WAF matched within a time, with what nodes counted in it, and those with an open alert. Costs follow
 * these sites, not all.
 */
export async function wafShares(sql: Knex, from: Date, to: Date): Promise<WafShareRow[]> {
  const { rows } = await sql.raw<{ rows: WafShareRow[] }>(
    `with open as (
       select site_id, (detail ->> 'threshold')::float8 as threshold from alert
        where kind = '${KIND}' and resolved_at is null),
     matched as (
       select distinct site_id from rule_minute
        where event = ${RuleEvent.WAF_MATCHED} and minute >= :from and minute < :to and site_id <> ''
       union select site_id from open)
     select m.site_id as "siteId", u.requests, u.attacks, o.threshold as open, w.mode_since as "modeSince"
       from matched m left join site_waf w on w.site_id = m.site_id left join open o on o.site_id = m.site_id
       cross join lateral (
         select coalesce(sum(requests), 0)::float8 as requests, ${ATTACKS} as attacks from usage_minute
          where site_id = m.site_id and minute >= :from and minute < :to) u
      order by 1`,
    { from, to } as never,
  );
  return rows;
}

/** Whether a site may have another alert. */
export async function mayAlert(sql: Knex, siteId: string, now: Date): Promise<boolean> {
  const { rows } = await sql.raw<{ rows: unknown[] }>(
    `select from alert where kind = '${KIND}' and site_id = :siteId
        and (resolved_at is null or greatest(started_at, resolved_at) > :now::timestamptz - ${QUIET}) limit 1`,
    { siteId, now } as never,
  );
  return rows.length === 0;
}

/** Opens the alert of a site and writes its event, in percent; neither where the alert is open. */
export async function raiseWafShare(
  sql: Knex,
  siteId: string,
  { observed, threshold }: { observed: number; threshold: number },
  now: Date,
): Promise<void> {
  await sql.raw(
    `with raised as (
       insert into alert (kind, site_id, detail, started_at)
         select '${KIND}', id, jsonb_build_object('observed', :observed::float8, 'threshold', :threshold::float8), :now
           from site where id = :siteId
         on conflict (kind, site_id) where resolved_at is null do nothing
         returning site_id),
     level as (select coalesce(max(level), 0)::smallint as level from site_security where site_id = :siteId),
     written as (
       insert into security_event (occurred_at, site_id, kind, level, previous_level, metric, observed, threshold, top_ips, top_paths)
         select :now, site_id, '${KIND}', level, level, '${KIND}', :observed, :threshold, '[]', '[]' from raised, level)
     insert into outbox (topic, key) select '${LIVE}', 'security ' || site_id from raised`,
    { siteId, observed, threshold, now } as never,
  );
}

/** Ends the alert of a site. */
export async function endWafShare(sql: Knex, siteId: string, now: Date): Promise<void> {
  await sql.raw(`update alert set resolved_at = ? where kind = '${KIND}' and site_id = ? and resolved_at is null`, [
    now,
    siteId,
  ]);
}

export interface RaisedShares {
  clusterId: string;
  clusterName: string;
  count: number;
  since: Date;
  named: { id: string; name: string }[];
}

/** Sites with an open alert, of all clusters or one, by cluster. Costs follow these sites, not all. */
export async function raisedWafShares(sql: Knex, clusterId: string | null): Promise<RaisedShares[]> {
  const { rows } = await sql.raw<{ rows: RaisedShares[] }>(
    `select c.id as "clusterId", c.name as "clusterName", count(*)::int as count, min(a.started_at) as since,
         jsonb_path_query_array(jsonb_agg(jsonb_build_object('id', s.id, 'name', s.name) order by a.started_at, s.id),
           '$[0 to ${MAX_NAMED - 1}]') as named
       from alert a join site s on s.id = a.site_id join cluster c on c.id = s.cluster_id
      where a.kind = '${KIND}' and a.resolved_at is null and (:clusterId::text is null or c.id = :clusterId)
      group by c.id order by count desc, c.name limit ${MAX_CLUSTERS}`,
    { clusterId } as never,
  );
  return rows;
}
