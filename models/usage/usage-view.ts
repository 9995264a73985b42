// Usage as a page shows it: sums of a range by time, and by site.
import type { Knex } from 'knex';
import type { USAGE_SORT } from '../../contract/resources/usage.ts';
import { orderBy, type Sort } from '../db/list-order.ts';
import { searchPattern } from '../db/search-pattern.ts';
import { type UsagePart, usageParts } from './usage-parts.ts';
import { DAY_SECONDS, HOUR_SECONDS, startOf, WINDOW_SECONDS } from './usage-totals.ts';

/** Decimal strings. */
export interface UsageSums {
  requests: string;
  bytesSent: string;
  bytesReceived: string;
}

export interface UsagePoint extends UsageSums {
  /** Milliseconds. */
  start: number;
}

/** Milliseconds, multiples of five minutes. */
export interface UsageSpan {
  from: number;
  to: number;
}

const VALUES = 'requests, bytes_sent, bytes_received';
const SUMS = 'sum(requests) as requests, sum(bytes_sent) as sent, sum(bytes_received) as received';
const TEXTS = `requests::text, sent::text as "bytesSent", received::text as "bytesReceived"`;
const epochMs = (column: string) => `date_part('epoch', ${column}) * 1000`;

/** Where each site's sums of a length are. */
const OF_SITES: Readonly<Record<number, { table: string; column: string }>> = {
  [WINDOW_SECONDS]: { table: 'usage_record', column: 'window_start' },
  [HOUR_SECONDS]: { table: 'usage_hour', column: 'starts_at' },
  [DAY_SECONDS]: { table: 'usage_day', column: 'starts_at' },
};

/** Texts made of numbers of ours alone. */
const timeOf = (ms: number) => `timestamptz '${new Date(ms).toISOString()}'`;

function allSites({ seconds, from, to }: UsagePart): string {
  return `select starts_at, ${VALUES} from usage_total
    where seconds = ${seconds} and starts_at >= ${timeOf(from)} and starts_at < ${timeOf(to)}`;
}

function oneSite({ seconds, from, to }: UsagePart): string {
  const { table, column } = OF_SITES[seconds]!;
  // Windows have an index by site. Hours and days are looked up one by one: there are at most some hundreds.
  if (seconds === WINDOW_SECONDS) {
    return `select ${column} as starts_at, ${VALUES} from ${table}
      where site_id = :siteId and ${column} >= ${timeOf(from)} and ${column} < ${timeOf(to)}`;
  }
  const last = to - seconds * 1000;
  return `select g as starts_at, ${VALUES}
    from generate_series(${timeOf(from)}, ${timeOf(last)}, interval '${seconds} seconds') g
    cross join lateral (select ${VALUES} from ${table} where ${column} = g and site_id = :siteId limit 1) h`;
}

/**
 * Sums of one site, or of all with null, by steps of so many seconds: those with traffic, in order; with up to when they
 * are complete, in milliseconds, or null. All of one moment.
 */
export async function usagePoints(
  sql: Knex,
  { from, to }: UsageSpan,
  siteId: string | null,
  stepSeconds: number,
): Promise<{ points: UsagePoint[]; completeUntil: number | null }> {
  const parts = usageParts(from, to, stepSeconds).map(siteId === null ? allSites : oneSite);
  const { rows } = await sql.raw<{ rows: (UsagePoint & { completeUntil: number | null })[] }>(
    `select s.*, ${epochMs('p.step')} as start, ${TEXTS}
       from (select ${epochMs('complete_until')} as "completeUntil" from usage_state offset 0) s
       left join (select ${startOf(stepSeconds, 'starts_at')} as step, ${SUMS}
         from (${parts.join(' union all ')}) u group by 1) p on true
      order by p.step`,
    { siteId } as never,
  );
  const completeUntil = rows[0]?.completeUntil ?? null;
  const points = rows.filter(({ start }) => start !== null).map(({ completeUntil: _, ...point }) => point);
  return { points, completeUntil };
}

export interface SiteUsage extends UsageSums {
  id: string;
  /** As it is or was called; '' where that is not known any more. */
  name: string;
  deleted: boolean;
}

type UsageSort = (typeof USAGE_SORT)[number];
const SORT_COLUMNS: Readonly<Record<UsageSort, string>> = {
  requests: 'u.requests',
  bytesSent: 'u.sent',
  bytesReceived: 'u.received',
};

const FOUND = `select id from site where search_text like :pattern
  union all select site_id from deleted_site where lower(name) like :pattern`;

/** Sites with usage in the range, those deleted too, and how many there are. */
export async function usageBySite(
  sql: Knex,
  { from, to }: UsageSpan,
  { search, sort = '-bytesSent' }: { search?: string | undefined; sort?: Sort<UsageSort> | undefined },
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: SiteUsage[]; total: number }> {
  const text = search?.trim().toLowerCase();
  const parts = usageParts(from, to).map((part) => {
    const { table, column } = OF_SITES[part.seconds]!;
    return `select site_id, ${VALUES} from ${table}
      where ${column} >= ${timeOf(part.from)} and ${column} < ${timeOf(part.to)}
        ${text ? 'and site_id in (select id from found)' : ''}`;
  });
  const order = orderBy(sort, SORT_COLUMNS, 'u.site_id');
  const { rows } = await sql.raw<{ rows: (SiteUsage & { total: number })[] }>(
    `with ${text ? `found as materialized (${FOUND}),` : ''}
       used as materialized (select site_id, ${SUMS} from (${parts.join(' union all ')}) p group by site_id),
       page as (select u.* from used u ${order} limit :limit offset :offset)
     select t.total, u.site_id as id, coalesce(s.name, d.name, '') as name, s.id is null as deleted, ${TEXTS}
       from (select count(*)::int as total from used) t
       left join page u on true
       left join site s on s.id = u.site_id left join deleted_site d on d.site_id = u.site_id
      ${order}`,
    { pattern: searchPattern(text), limit, offset } as never,
  );
  const items = rows.filter(({ id }) => id !== null).map(({ total: _, ...item }) => item);
  return { items, total: rows[0]?.total ?? 0 };
}

/** Names of sites, also of deleted ones, by id; those of which nothing is known are left out. */
export async function siteNames(sql: Knex, ids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>(
    `select site_id as id, name from deleted_site where site_id = any(:ids)
     union all select id, name from site where id = any(:ids)`,
    { ids } as never,
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}
