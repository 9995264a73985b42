// Reads of usage records, each with up to when they are complete, in one snapshot.
import type { Knex } from 'knex';

export interface UsageRow {
  siteId: string;
  /** Milliseconds, as all times here: dates would take half of the time of a page. */
  windowStart: number;
  /** Decimal. */
  requests: string;
  bytesSent: string;
  bytesReceived: string;
  revision: number;
  seq: string;
  updatedAt: number;
}

export interface UsageRows {
  rows: UsageRow[];
  completeUntil: number | null;
}

const millis = (column: string) => `date_part('epoch', ${column}) * 1000`;
const COLUMNS = `site_id as "siteId", ${millis('window_start')} as "windowStart", requests::text, bytes_sent::text as "bytesSent",
  bytes_received::text as "bytesReceived", revision, seq::text, floor(${millis('updated_at')}) as "updatedAt"`;

/** A place in the order of windows and sites. */
export interface UsagePlace {
  windowStart: number;
  siteId: string;
}

export interface UsageRange {
  from: Date;
  to: Date;
  siteId: string | null;
  after: UsagePlace | null;
}

/** Records of the range behind the place, by window and site. */
export async function usageInRange(sql: Knex, range: UsageRange, limit: number): Promise<UsageRows> {
  const { from, to, siteId, after } = range;
  const conditions = ['window_start >= :from', 'window_start < :to'];
  if (siteId !== null) conditions.push('site_id = :siteId');
  if (after) conditions.push('(window_start, site_id) > (:afterStart, :afterSite)');
  return readRows(
    sql,
    `select ${COLUMNS} from usage_record where ${conditions.join(' and ')} order by window_start, site_id limit :limit`,
    {
      from: after ? new Date(after.windowStart) : from,
      to,
      siteId,
      afterStart: after && new Date(after.windowStart),
      afterSite: after?.siteId,
      limit,
    },
    '"windowStart", "siteId"',
  );
}

/** Records with a higher sequence number, in the order of theirs. */
export async function usageAfter(sql: Knex, seq: string, limit: number): Promise<UsageRows> {
  return readRows(
    sql,
    `select ${COLUMNS} from usage_record where usage_record.seq > least(:seq::numeric, 9223372036854775807)::bigint
      order by usage_record.seq limit :limit`,
    { seq, limit },
    'p.seq::bigint',
  );
}

async function readRows(sql: Knex, page: string, bindings: object, order: string): Promise<UsageRows> {
  const { rows } = await sql.raw<{ rows: (UsageRow & { completeUntil: number | null })[] }>(
    `select s.*, p.* from (select ${millis('complete_until')} as "completeUntil" from usage_state offset 0) s left join (${page}) p on true order by ${order}`,
    bindings as never,
  );
  const completeUntil = rows[0]?.completeUntil ?? null;
  return { rows: rows.filter(({ siteId }) => siteId !== null), completeUntil };
}
