// How often rules matched within a range: the last two hours are counted by minute, those before by hour.
import type { Knex } from 'knex';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';

/** An hour of which a part is in the range counts whole. */
const COUNTED = `(
  select platform, rule_id, event, requests from rule_hour
   where site_id = :siteId and starts_at > :from::timestamptz - interval '1 hour'
  union all
  select platform, rule_id, event, requests from rule_minute where site_id = :siteId and minute > :from::timestamptz) c`;

export interface LoggedRule {
  ruleId: string;
  /** null: the rule is gone. */
  name: string | null;
  platform: boolean;
  requests: number;
}

/** The log rules that matched most on a site since a time. */
export async function loggedRules(sql: Knex, siteId: string, from: Date, limit: number): Promise<LoggedRule[]> {
  const { rows } = await sql.raw<{ rows: LoggedRule[] }>(
    `with matched as (
       select rule_id, platform, sum(requests)::float8 as requests from ${COUNTED}
        where event = ${RuleEvent.LOGGED} group by 1, 2 order by 3 desc, 1, 2 limit :limit)
     select m.rule_id as "ruleId", n.name, m.platform, m.requests from matched m
       left join lateral (
         select r ->> 'name' as name from rule_set s, jsonb_array_elements(s.rules) r
          where s.id = case when m.platform then '' else :siteId end and r ->> 'id' = m.rule_id limit 1) n on true
      order by m.requests desc, 1, 3`,
    { siteId, from, limit } as never,
  );
  return rows;
}

export interface MatchedAsked {
  siteId: string;
  from: Date;
  to: Date;
  limit: number;
  /** Of rules of the WAF that are left out. */
  families: readonly number[];
}

export interface MatchedRule extends LoggedRule {
  event: RuleEvent;
}

/** What matched most on a site between two times, also rules of the WAF; with '' the rules of the platform on all sites. */
export async function matchedRules(
  sql: Knex,
  { siteId, from, to, limit, families }: MatchedAsked,
): Promise<MatchedRule[]> {
  const { rows } = await sql.raw<{ rows: MatchedRule[] }>(
    `with matched as (
       select rule_id, platform, event, sum(requests)::float8 as requests from (
         select platform, rule_id, event, requests from rule_hour
          where site_id = :siteId and starts_at > :from::timestamptz - interval '1 hour' and starts_at < :to::timestamptz
         union all
         select platform, rule_id, event, requests from rule_minute
          where site_id = :siteId and minute >= :from::timestamptz and minute < :to::timestamptz) c
        where event <> ${RuleEvent.WAF_MATCHED} or rule_id ~ '^9[0-9]{5}$' and left(rule_id, 3) <> all(:families)
        group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit :limit)
     select m.rule_id as "ruleId", n.name, m.platform, m.event, m.requests from matched m
       left join lateral (
         select r ->> 'name' as name from rule_set s, jsonb_array_elements(s.rules) r
          where m.event <> ${RuleEvent.WAF_MATCHED} and s.id = case when m.platform then '' else :siteId end
            and r ->> 'id' = m.rule_id limit 1) n on true
      order by m.requests desc, 1, 3, 4`,
    { siteId, from, to, limit, families: families.map(String) } as never,
  );
  return rows;
}

export interface RuleHit {
  ruleId: string;
  event: RuleEvent;
  requests: number;
}

/** What became of requests since a time under the rules of a site, or with '' of the platform: the most frequent. */
export async function ruleHitsSince(sql: Knex, siteId: string, from: Date, limit: number): Promise<RuleHit[]> {
  const { rows } = await sql.raw<{ rows: RuleHit[] }>(
    `select rule_id as "ruleId", event, sum(requests)::float8 as requests from ${COUNTED}
      where platform = (:siteId = '') and event < ${RuleEvent.WAF_MATCHED} group by 1, 2 order by 3 desc, 1, 2 limit :limit`,
    { siteId, from, limit } as never,
  );
  return rows;
}

export interface TopRule {
  ruleId: number;
  requests: number;
}

/** The rules of the WAF that matched most on a site since a time, without those of `families`. */
export async function topWafRules(
  sql: Knex,
  siteId: string,
  from: Date,
  limit: number,
  families: readonly number[],
): Promise<TopRule[]> {
  const { rows } = await sql.raw<{ rows: TopRule[] }>(
    `select rule_id::int as "ruleId", sum(requests)::float8 as requests from ${COUNTED}
      where event = ${RuleEvent.WAF_MATCHED} and rule_id ~ '^9[0-9]{5}$' and left(rule_id, 3) <> all(:families)
      group by 1 order by 2 desc, 1 limit :limit`,
    { siteId, from, limit, families: families.map(String) } as never,
  );
  return rows;
}

/** Active nodes of a cluster, or of all with null, that do not count what becomes of requests under rules. */
export async function nodesWithoutRuleCounts(sql: Knex, clusterId: string | null): Promise<number> {
  const { rows } = await sql.raw<{ rows: { nodes: number }[] }>(
    `select count(*)::int as nodes from node n left join node_state s on s.node_id = n.id
      where n.status = 'active' and (:clusterId::text is null or n.cluster_id = :clusterId)
        and not 'rule-log-v1' = any(coalesce(s.features, '{}'))`,
    { clusterId } as never,
  );
  return rows[0]!.nodes;
}
