// Ranges of statistics: they end with the running point.
import { type AnalyticsRange, RANGES } from '../../contract/resources/analytics.ts';
import type { LevelSeconds } from '../../models/traffic/traffic-columns.ts';

export interface Span {
  range: AnalyticsRange;
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
