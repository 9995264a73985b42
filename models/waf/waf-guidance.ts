// What the WAF found on a site lately: sums of what nodes counted, and what the events tell of the same place.
import type { Knex } from 'knex';

/** Events looked at, the newest: of more the oldest are left out. */
const MAX_EVENTS = 10_000;

/** When the site's mode became what it is; null while nothing was saved. */
export async function wafModeSince(sql: Knex, siteId: string): Promise<Date | null> {
  const { rows } = await sql.raw<{ rows: { since: Date }[] }>(
    'select mode_since as since from site_waf where site_id = ?',
    [siteId],
  );
  return rows[0]?.since ?? null;
}

export interface WafSums {
  requests: number;
  matched: number;
  wouldBlock: number;
  blocked: number;
}

const sumOf = (name: string) => `coalesce(sum((counts ->> '${name}')::numeric), 0)::float8`;
const ROWS = 'requests, counts';

/**
 * Requests of a site since a time, and before another; of windows of five minutes that are not all within it, what was moved
 * there is left out.
 */
export async function wafSums(sql: Knex, siteId: string, from: Date, to: Date): Promise<WafSums> {
  // Windows are looked up one by one: their index begins with the time.
  const { rows } = await sql.raw<{ rows: WafSums[] }>(
    `select coalesce(sum(requests), 0)::float8 as requests, ${sumOf('waf.matched')} as matched,
        ${sumOf('waf.attack')} as "wouldBlock", ${sumOf('blocked.waf')} as blocked
       from (select ${ROWS} from usage_minute
               where site_id = :siteId and minute >= :from and minute < :to
         union all select w.requests, w.counts
           from generate_series(date_bin('5 minutes', :from::timestamptz + interval '5 minutes', 'epoch'),
               :to::timestamptz - interval '5 minutes', interval '5 minutes') g
          cross join lateral (
            select ${ROWS} from usage_window where window_start = g and site_id = :siteId offset 0) w) c`,
    { siteId, from, to } as never,
  );
  return rows[0]!;
}

export interface WafSuspect {
  ruleId: number;
  path: string;
  part: string;
  name: string;
  events: number;
  clients: number;
}

/** A client is an IPv4 address or an IPv6 /64, as elsewhere: who has one of the latter has all of its addresses. */
const CLIENT = `network(set_masklen((waf ->> 'address')::inet,
  case family((waf ->> 'address')::inet) when 6 then 64 else 32 end))`;

/** Rules that matched at the same place in attacks of many clients since a time: those with the most clients. */
export async function wafSuspects(
  sql: Knex,
  siteId: string,
  from: Date,
  { events, clients, limit }: { events: number; clients: number; limit: number },
): Promise<WafSuspect[]> {
  const { rows } = await sql.raw<{ rows: WafSuspect[] }>(
    `select (m ->> 'rule')::int as "ruleId", waf ->> 'path' as path, m ->> 'part' as part, m ->> 'name' as name,
        count(distinct id)::int as events, count(distinct ${CLIENT})::int as clients
       from (select id, waf from security_event
              where site_id = :siteId and kind = 'waf_matched' and occurred_at > :from
              order by occurred_at desc, id desc limit ${MAX_EVENTS}) e
       cross join lateral jsonb_array_elements(waf -> 'matches') m
      where (waf -> 'score')::int >= (waf -> 'threshold')::int
      group by 1, 2, 3, 4 having count(distinct id) >= :events and count(distinct ${CLIENT}) >= :clients
      order by clients desc, events desc, 1, 2, 3, 4 limit :limit`,
    { siteId, from, events, clients, limit } as never,
  );
  return rows;
}
