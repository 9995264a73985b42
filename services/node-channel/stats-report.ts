// A node's batch of counts, bounded. Nodes are authenticated, not trusted: what cannot be is left out and the rest
// counts, so a bad row never costs its batch.
import { Code, ConnectError } from '@connectrpc/connect';
import { LATENCY_BOUNDS_MS } from '../../contract/latency-buckets.ts';
import { WAF_RULE_EVENT } from '../../contract/resources/rule-hits.ts';
import { RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { BatchHead, Span } from './batch-rules.ts';
import { type CodedMinute, type CodedReport, type CodedRule, NO_RULES, NO_TOPS } from './decode-stats.ts';
import { isPossibleTop, MAX_TOPS } from './top-report.ts';

const MAX_ROWS = 10_000;
const MAX_GAPS = 1_000;
/** Rule counts of one batch: four times the most that an agent puts into one. */
const MAX_RULE_ROWS = 20_000;
/** More of one site in one minute than these are a broken counter. */
const MAX_REQUESTS = 10_000_000_000;
const MAX_BYTES = 1_000_000_000_000_000;
const MAX_STATUSES = 500;
const MAX_NAMES = 200;
/** Log rules and others of one site in one minute. */
const MAX_RULES = 140;
const RULE_ID = /^[A-Za-z0-9_-]{1,64}$/;
const BUCKETS = LATENCY_BOUNDS_MS.length + 1;
const SITE_ID = /^[A-Za-z0-9_-]{0,64}$/;
const NAME = /^[A-Za-z0-9_.:-]{1,64}$/;
const MINUTE_MS = 60_000;
/** Minutes further ahead than this are a wrong clock. */
const AHEAD_MS = 5 * MINUTE_MS;
/** 2^40 seconds. */
const LAST_TIME = 2 ** 40;

/** Counts of one site in one minute that make sense by themselves; what did not counts 0. */
export interface StatsRow extends CodedMinute {
  /** Milliseconds of the start of the minute. */
  minute: number;
  /** The same of what is counted under rules, which has a place however old it is. */
  ruleMinute: number;
}

/** Why rows were left out, or moved into the time that has a place. */
export type Misfit = 'bad' | 'too_old' | 'moved';

export interface StatsBatch extends BatchHead {
  rows: StatsRow[];
  /** Those of the rows. */
  numbers: Float64Array;
  /** Counts of rules in all rows. */
  rules: number;
  /** Lists in all rows. */
  lists: number;
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

/**
 * Takes the numbers of the report as its own. Throws invalid_argument for a batch beyond its limits, or without a number but
 * with something in it.
 */
export function readStatsReport(request: CodedReport, places: Places): StatsBatch {
  if (request.minutes.length > MAX_ROWS || request.gaps.length > MAX_GAPS) {
    throw new ConnectError(`a batch contains at most ${MAX_ROWS} minutes and ${MAX_GAPS} gaps`, Code.InvalidArgument);
  }
  const empty = request.minutes.length === 0 && request.gaps.length === 0;
  if (request.sequence >= 1n << 63n || (request.sequence === 0n && !empty)) {
    throw new ConnectError('the batch has no valid sequence number', Code.InvalidArgument);
  }
  const misfits = { bad: 0, too_old: 0, moved: 0 };
  const rows: StatsRow[] = [];
  const { numbers } = request;
  for (const minute of request.minutes) {
    const row = readRow(minute, numbers, places, misfits);
    if (row) rows.push(row);
  }
  const rules = rows.reduce((sum, row) => sum + row.rules.length, 0);
  if (rules > MAX_RULE_ROWS) {
    throw new ConnectError(`a batch contains at most ${MAX_RULE_ROWS} counts of rules`, Code.InvalidArgument);
  }
  const until = request.completeUntil;
  return {
    sequence: request.sequence,
    firstHeld: request.firstHeld,
    rows,
    numbers,
    rules,
    lists: rows.reduce(
      (sum, { tops }) => sum + (tops.length === 0 ? 0 : new Set(tops.map(({ list }) => list)).size),
      0,
    ),
    completeUntil: until > 0 && until < LAST_TIME ? Math.min(until * 1000, places.now) : null,
    gaps: request.gaps.flatMap(({ from, to }) => {
      // Nothing is missing of the time to come, and a gap that ends there would never be swept.
      const possible = from > 0 && from <= to && to < LAST_TIME && from * 1000 <= places.now;
      return possible ? [{ from: from * 1000, to: Math.min(to * 1000, places.now) }] : [];
    }),
    misfits,
  };
}

function readRow(
  row: CodedMinute,
  numbers: Float64Array,
  places: Places,
  misfits: Record<Misfit, number>,
): StatsRow | null {
  const { siteId, requests, bytesSent, bytesReceived } = row;
  const possible =
    requests <= MAX_REQUESTS && bytesSent <= MAX_BYTES && bytesReceived <= MAX_BYTES && SITE_ID.test(siteId);
  if (!possible || row.minute <= 0 || row.minute >= LAST_TIME) {
    misfits.bad += 1;
    return null;
  }
  const told = Math.floor((row.minute * 1000) / MINUTE_MS) * MINUTE_MS;
  if (told < places.keepFrom) {
    misfits.too_old += 1;
    return null;
  }
  const minute = placeOf(told, places);
  if (minute !== told) misfits.moved += 1;
  const { at, statuses, names } = row;
  const counts = at + 2 * statuses;
  const end = counts + names.length + row.latency;
  for (let index = at; index < end; index++) if (numbers[index]! > MAX_REQUESTS) numbers[index] = 0;
  for (let index = 0; index < statuses; index++) {
    const code = numbers[at + 2 * index]!;
    if (code < 100 || code >= 600 || index >= MAX_STATUSES) numbers[at + 2 * index + 1] = 0;
  }
  for (let index = 0; index < names.length; index++) {
    if (index >= MAX_NAMES || !NAME.test(names[index]!)) numbers[counts + index] = 0;
  }
  const latency = row.latency <= BUCKETS ? row.latency : 0;
  const cacheHits = row.cacheHits <= MAX_REQUESTS ? row.cacheHits : 0;
  const cacheMisses = row.cacheMisses <= MAX_REQUESTS ? row.cacheMisses : 0;
  const cacheHitBytes = row.cacheHitBytes <= MAX_BYTES ? row.cacheHitBytes : 0;
  const cached = { cacheHits, cacheMisses, cacheHitBytes };
  const rules = row.rules.length === 0 ? NO_RULES : row.rules.slice(0, MAX_RULES).filter(isPossible(siteId));
  const tops = row.tops.length === 0 ? NO_TOPS : row.tops.slice(0, MAX_TOPS).filter(isPossibleTop);
  const ruleMinute = Math.min(minute, told);
  const sums = { requests, bytesSent, bytesReceived, ...cached };
  return { siteId, minute, ruleMinute, ...sums, at, statuses, names, latency, rules, tops };
}

/** Rules of the platform count for the node; of a site's there are its own, and log rules of the platform. */
function isPossible(siteId: string): (rule: CodedRule) => boolean {
  return ({ ruleId, platform, event, count }) => {
    const placed = siteId === '' ? platform : !platform || event === RuleEvent.LOGGED;
    return (
      placed && event >= 1 && event <= WAF_RULE_EVENT && count > 0 && count <= MAX_REQUESTS && RULE_ID.test(ruleId)
    );
  };
}

/** The minute itself, or the nearest that has a place. */
function placeOf(minute: number, { now, floor }: Places): number {
  if (minute > now + AHEAD_MS) return Math.floor(now / MINUTE_MS) * MINUTE_MS;
  return Math.max(minute, floor);
}
