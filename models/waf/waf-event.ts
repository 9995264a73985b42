// Requests in which rules of the WAF matched, as nodes told of some of them.
import type { Knex } from 'knex';
import type { ReportedWaf } from '../security/security-report.ts';

/** Counted at most: beyond, `total` says so many. */
export const MAX_COUNTED = 10_000;

export interface WafEventFilter {
  siteId: string;
  from: Date;
  blocked: boolean | null;
  ruleId: number | null;
  requestId: string | null;
  /** Paths that begin with it. */
  path: string | null;
  /** An address or a range. */
  cidr: string | null;
}

export interface WafEventRow {
  id: string;
  nodeId: string | null;
  nodeName: string | null;
  occurredAt: Date;
  waf: ReportedWaf;
}

const FOUND = `from security_event where site_id = :siteId and kind = 'waf_matched' and occurred_at > :from
  and (:blocked::boolean is null or (waf -> 'blocked')::boolean = :blocked)
  and (:ruleId::int is null or waf -> 'rules' @> to_jsonb(:ruleId::int))
  and (:requestId::text is null or waf ->> 'requestId' = :requestId)
  and (:path::text is null or starts_with(waf ->> 'path', :path))
  and (:cidr::inet is null or (waf ->> 'address')::inet <<= :cidr::inet)`;

/** Newest first. */
export async function wafEventPage(
  sql: Knex,
  filter: WafEventFilter,
  limit: number,
  offset: number,
): Promise<WafEventRow[]> {
  const { rows } = await sql.raw<{ rows: WafEventRow[] }>(
    `select e.id, n.id as "nodeId", n.name as "nodeName", e.occurred_at as "occurredAt", e.waf
       from (select id, node_id, occurred_at, waf ${FOUND}
              order by occurred_at desc, id desc limit :limit offset :offset) e
       left join node n on n.id = e.node_id order by e.occurred_at desc, e.id desc`,
    { ...filter, limit, offset } as never,
  );
  return rows;
}

export async function wafEventCount(sql: Knex, filter: WafEventFilter): Promise<number> {
  const { rows } = await sql.raw<{ rows: { total: number }[] }>(
    `select count(*)::int as total from (select 1 ${FOUND} limit ${MAX_COUNTED}) e`,
    filter as never,
  );
  return rows[0]!.total;
}

export type NewestMatches = Pick<ReportedWaf, 'path' | 'rules' | 'matches' | 'matchesSeen' | 'score' | 'threshold'>;

/** What the newest events since a time tell of what matched where. */
export async function newestMatches(sql: Knex, siteId: string, from: Date, limit: number): Promise<NewestMatches[]> {
  const { rows } = await sql.raw<{ rows: NewestMatches[] }>(
    `select waf ->> 'path' as path, waf -> 'rules' as rules, waf -> 'matches' as matches, (waf -> 'score')::int as score,
        (waf -> 'threshold')::int as threshold, (waf -> 'matchesSeen')::int as "matchesSeen"
       from security_event
      where site_id = :siteId and kind = 'waf_matched' and occurred_at > :from
      order by occurred_at desc, id desc limit :limit`,
    { siteId, from, limit } as never,
  );
  return rows;
}
