// A node's batch of counts, bounded. Nodes are authenticated, not trusted: what cannot be is left out and the rest
// counts, so a bad row never costs its batch.
import { Code, ConnectError } from '@connectrpc/connect';
import { LATENCY_BOUNDS_MS } from '../../contract/latency-buckets.ts';
import type { ReportStatsRequest, SiteMinute } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { BatchHead, Span } from './batch-rules.ts';

const MAX_ROWS = 10_000;
const MAX_GAPS = 1_000;
/** More of one site in one minute than these are a broken counter. */
const MAX_REQUESTS = 10_000_000_000n;
const MAX_BYTES = 1_000_000_000_000_000n;
const MAX_STATUSES = 500;
const MAX_NAMES = 200;
const BUCKETS = LATENCY_BOUNDS_MS.length + 1;
const SITE_ID = /^[A-Za-z0-9_-]{0,64}$/;
const NAME = /^[A-Za-z0-9_.:-]{1,64}$/;
const MINUTE_MS = 60_000;
/** Minutes further ahead than this are a wrong clock. */
const AHEAD_MS = 5 * MINUTE_MS;
/** 2^40 seconds. */
const LAST_TIME = 1n << 40n;

/** Counts of one site in one minute that make sense by themselves. */
export interface StatsRow {
  siteId: string;
  /** Milliseconds of the start of the minute. */
  minute: number;
  requests: number;
  bytesSent: bigint;
  bytesReceived: bigint;
  statuses: readonly { code: number; count: bigint }[];
  counts: readonly { name: string; count: bigint }[];
  latency: readonly bigint[];
}

/** Why rows were left out, or moved into the time that has a place. */
export type Misfit = 'bad' | 'too_old' | 'moved';

export interface StatsBatch extends BatchHead {
  rows: StatsRow[];
  /** Milliseconds; null: not told. */
  completeUntil: number | null;
  gaps: Span[];
  misfits: Record<Misfit, number>;
}

/** Times that have a place: rows before `keepFrom` are not kept, those before `floor` go to it. */
export interface Places {
  now: number;
  keepFrom: number;
  floor: number;
}

/** Throws invalid_argument for a batch beyond its limits, or without a number but with something in it. */
export function readStatsReport(request: ReportStatsRequest, places: Places): StatsBatch {
  if (request.minutes.length > MAX_ROWS || request.gaps.length > MAX_GAPS) {
    throw new ConnectError(`a batch holds at most ${MAX_ROWS} minutes and ${MAX_GAPS} gaps`, Code.InvalidArgument);
  }
  const empty = request.minutes.length === 0 && request.gaps.length === 0;
  if (request.sequence >= 1n << 63n || (request.sequence === 0n && !empty)) {
    throw new ConnectError('the batch has no valid sequence', Code.InvalidArgument);
  }
  const misfits = { bad: 0, too_old: 0, moved: 0 };
  const rows: StatsRow[] = [];
  for (const minute of request.minutes) {
    const row = readRow(minute, places, misfits);
    if (row) rows.push(row);
  }
  const until = request.completeUntil;
  return {
    sequence: request.sequence,
    firstHeld: request.firstHeld,
    rows,
    completeUntil: until > 0n && until < LAST_TIME ? Math.min(Number(until) * 1000, places.now) : null,
    gaps: request.gaps.flatMap(({ from, to }) => {
      const possible = from > 0n && from <= to && to < LAST_TIME;
      return possible ? [{ from: Number(from) * 1000, to: Number(to) * 1000 }] : [];
    }),
    misfits,
  };
}

function readRow(row: SiteMinute, places: Places, misfits: Record<Misfit, number>): StatsRow | null {
  const { siteId, requests, bytesSent, bytesReceived } = row;
  const possible =
    requests <= MAX_REQUESTS && bytesSent <= MAX_BYTES && bytesReceived <= MAX_BYTES && SITE_ID.test(siteId);
  if (!possible || row.minute <= 0n || row.minute >= LAST_TIME) {
    misfits.bad += 1;
    return null;
  }
  const told = Math.floor((Number(row.minute) * 1000) / MINUTE_MS) * MINUTE_MS;
  if (told < places.keepFrom) {
    misfits.too_old += 1;
    return null;
  }
  const minute = placeOf(told, places);
  if (minute !== told) misfits.moved += 1;
  return {
    siteId,
    minute,
    requests: Number(requests),
    bytesSent,
    bytesReceived,
    statuses: row.statuses
      .filter(({ code, count }) => code >= 100 && code < 600 && count <= MAX_REQUESTS)
      .slice(0, MAX_STATUSES),
    counts: row.counts.filter(({ name, count }) => NAME.test(name) && count <= MAX_REQUESTS).slice(0, MAX_NAMES),
    latency: row.latency.length <= BUCKETS && row.latency.every((count) => count <= MAX_REQUESTS) ? row.latency : [],
  };
}

/** The minute itself, or the nearest that has a place. */
function placeOf(minute: number, { now, floor }: Places): number {
  if (minute > now + AHEAD_MS) return Math.floor(now / MINUTE_MS) * MINUTE_MS;
  return Math.max(minute, floor);
}
