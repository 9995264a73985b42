// Periods of statistics: a range ends with the running point, and one of the caller's own has the shortest points that are kept.
import { fail } from '../../contract/errors.ts';
import { type AnalyticsRange, RANGES } from '../../contract/resources/analytics.ts';
import { KEPT_DAYS, LEVELS, type LevelSeconds } from '../../models/traffic/traffic-columns.ts';

const DAY_MS = 86_400_000;
const BUCKETS = [...new Set(Object.values(RANGES).map(({ bucketSeconds }) => bucketSeconds))];
/** As many as a range has at most, and one for the widening. */
const MOST_POINTS = 366;

export interface Span {
  /** null: the caller's own. */
  range: AnalyticsRange | null;
  bucketSeconds: number;
  /** Milliseconds. */
  from: number;
  to: number;
}

/** What a range is at a time in milliseconds. */
export function spanOf(range: AnalyticsRange, now: number): Span {
  const { bucketSeconds, seconds } = RANGES[range];
  const bucketMs = bucketSeconds * 1000;
  const to = (Math.floor(now / bucketMs) + 1) * bucketMs;
  return { range, bucketSeconds, from: to - seconds * 1000, to };
}

export interface PeriodAsked {
  range?: AnalyticsRange | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** What is asked at a time in milliseconds; 24h by default. Throws ANALYTICS_PERIOD_INVALID. */
export function periodOf({ range, from, to }: PeriodAsked, now: number): Span {
  if (from === undefined && to === undefined) return spanOf(range ?? '24h', now);
  if (from === undefined || to === undefined || range !== undefined) fail('ANALYTICS_PERIOD_INVALID');
  const [start, end] = [Date.parse(from), Math.min(Date.parse(to), now + 1)];
  if (!(start < end) || now - start > KEPT_DAYS.traffic_day * DAY_MS) fail('ANALYTICS_PERIOD_INVALID');
  const widened = BUCKETS.map((bucketSeconds) => {
    const ms = bucketSeconds * 1000;
    return { range: null, bucketSeconds, from: Math.floor(start / ms) * ms, to: Math.ceil(end / ms) * ms };
  });
  const fits = (span: Span) => (span.to - span.from) / (span.bucketSeconds * 1000) <= MOST_POINTS && isKept(span, now);
  return widened.find(fits) ?? widened.at(-1)!;
}

/** Whether the sums of all points are still there. */
export function isKept(span: Pick<Span, 'bucketSeconds' | 'from'>, now: number): boolean {
  const lastMs = span.bucketSeconds * 1000;
  return now - span.from <= KEPT_DAYS[LEVELS[levelOf(span)]] * DAY_MS + lastMs;
}

/** The longest sums that make up the points. */
export function levelOf({ bucketSeconds }: Pick<Span, 'bucketSeconds'>): LevelSeconds {
  return ([86400, 3600, 300] as const).find((level) => bucketSeconds % level === 0) ?? 60;
}

/** Starts of the points in milliseconds. */
export function startsOf({ from, to, bucketSeconds }: Span): number[] {
  const ms = bucketSeconds * 1000;
  return Array.from({ length: (to - from) / ms }, (_, index) => from + index * ms);
}

export function presentSpan({ range, bucketSeconds, from, to }: Span) {
  return { range, bucketSeconds, from: new Date(from).toISOString(), to: new Date(to).toISOString() };
}
