import { fail } from '../../contract/errors.ts';
import { LONGEST_DAYS, WINDOW_MS } from '../../contract/resources/usage.ts';
import type { UsageSpan } from '../../models/usage/usage-view.ts';
import { isoTime } from './iso-time.ts';

const LONGEST_MS = LONGEST_DAYS * 86_400_000;

/** The range in milliseconds. Throws USAGE_RANGE_INVALID unless both are starts of windows, `to` after `from`. */
export function usageRange(input: { from: string; to: string }): UsageSpan {
  const [from, to] = [Date.parse(input.from), Date.parse(input.to)];
  if (from % WINDOW_MS !== 0 || to % WINDOW_MS !== 0 || to <= from) fail('USAGE_RANGE_INVALID');
  return { from, to };
}

/** As {@link usageRange} for what is summed: USAGE_RANGE_INVALID also for more than 400 days. */
export function summedRange(input: { from: string; to: string }): UsageSpan {
  const range = usageRange(input);
  return range.to - range.from <= LONGEST_MS ? range : fail('USAGE_RANGE_INVALID');
}

export function isoOf<T extends number | null>(time: T): T extends number ? string : null;
export function isoOf(time: number | null): string | null {
  return time === null ? null : isoTime(time);
}
