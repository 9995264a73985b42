// Reads of statistics over time.
import type { Knex } from 'knex';
import { AMOUNTS, LEVELS, type LevelSeconds } from './traffic-columns.ts';

export type TrafficKind = 'all' | 'cluster' | 'node' | 'site';
type Figures = Readonly<Record<string, number>>;

/** One of the rows that add up to a point. */
export interface TrafficRow {
  id: string;
  /** Milliseconds. */
  start: number;
  requests: number;
  bytesSent: number;
  bytesReceived: number;
  /** By key, as in the tables; null: none, and of nodes. */
  figures: Figures | null;
  cacheHits: number;
  cacheMisses: number;
  /** By the first digit of the status. */
  classes: number[];
}

export interface TrafficAsked {
  kind: TrafficKind;
  ids: readonly string[];
  /** Milliseconds, multiples of the seconds. */
  from: number;
  to: number;
  /** Length of the sums that are read. */
  seconds: LevelSeconds;
}

/** Raw minutes are read for at most this long: beyond it something is broken, and a page must not read a day of them. */
const LONGEST_TAIL = `interval '1 hour'`;
const epochMs = (column: string) => `date_part('epoch', ${column}) * 1000`;
const timeOf = (ms: number) => `timestamptz '${new Date(ms).toISOString()}'`;
/** Of minutes, classes are in the statuses alone. */
const OF_MINUTES = AMOUNTS.map((amount) => (/^s\d$/.test(amount) ? `0 as ${amount}` : `${amount}::float8`)).join(', ');
const SUMMED = AMOUNTS.map((amount) => `${amount}::float8`).join(', ');

interface Row extends Record<(typeof AMOUNTS)[number], number> {
  id: string;
  start: number;
  figures: Figures | null;
  statuses: Figures | null;
  counts: Figures | null;
  latency: (number | string)[] | null;
}

/**
 * Sums with traffic, in no order. Of sites also minutes that are in no sum yet, which have figures alone instead of
 * classes. All of one moment.
 */
export async function trafficRows(sql: Knex, asked: TrafficAsked): Promise<TrafficRow[]> {
  const { rows } = await sql.raw<{ rows: Row[] }>(asked.kind === 'site' ? ofSites(asked) : sums(asked, asked.to), {
    ids: asked.ids,
  } as never);
  return rows.map(read);
}

function sums({ kind, from, seconds }: TrafficAsked, to: number): string {
  return `select id, ${epochMs('starts_at')} as start, ${SUMMED}, figures,
      null::jsonb as statuses, null::jsonb as counts, null::text[] as latency
    from ${LEVELS[seconds]} where kind = '${kind}' and id = any(:ids)
      and starts_at >= ${timeOf(from)} and starts_at < ${timeOf(to)}`;
}

function ofSites(asked: TrafficAsked): string {
  const { from, to, seconds } = asked;
  const minutes = (since: string) =>
    `select site_id as id, ${epochMs('minute')} as start, ${OF_MINUTES}, null::jsonb as figures, statuses, counts,
        latency::text[]
      from usage_minute where site_id = any(:ids) and minute >= ${since} and minute < ${timeOf(to)}`;
  if (seconds === 60) return minutes(timeOf(from));
  return `${sums(asked, to)} union all ${minutes(
    `(select greatest(summed_until, now() - ${LONGEST_TAIL}) from traffic_state)`,
  )}`;
}

function read(row: Row): TrafficRow {
  const figures = row.figures ?? merged(row);
  return {
    id: row.id,
    start: row.start,
    requests: row.requests,
    bytesSent: row.bytes_sent,
    bytesReceived: row.bytes_received,
    cacheHits: row.cache_hits,
    cacheMisses: row.cache_misses,
    classes: [row.s1, row.s2, row.s3, row.s4, row.s5],
    figures,
  };
}

function merged({ statuses, counts, latency }: Row): Figures | null {
  if (!statuses && !counts && !latency) return null;
  const figures: Record<string, number> = {};
  for (const [code, n] of Object.entries(statuses ?? {})) figures[`s:${code}`] = n;
  for (const [name, n] of Object.entries(counts ?? {})) figures[`n:${name}`] = n;
  for (const [bucket, n] of (latency ?? []).entries()) if (Number(n) > 0) figures[`l:${bucket}`] = Number(n);
  return figures;
}
