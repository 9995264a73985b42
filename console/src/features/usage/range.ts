// Which time usage is shown of. Days and months are those of UTC, as in the records. Pure.

export const RANGES = ['today', 'days7', 'days30', 'month', 'lastMonth', 'custom'] as const;
export type RangeName = (typeof RANGES)[number];

/** Milliseconds, multiples of five minutes. */
export interface Range {
  from: number;
  to: number;
}

export const DAY_MS = 86_400_000;
const WINDOW_MS = 300_000;
/** What the contract takes at once. */
const LONGEST_MS = 400 * DAY_MS;

export const midnight = (time: number) => Math.floor(time / DAY_MS) * DAY_MS;

/** 2026-11-23 */
export const dayText = (time: number) => new Date(time).toISOString().slice(0, 10);

/** The first moment of a day as {@link dayText} writes it; null for anything else. */
export function dayOf(text: string): number | null {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) || dayText(time) !== text ? null : time;
}

/**
 * The range that a name means at a time; `first` and `last` are the days of one that somebody chose, both in it. What
 * has not ended yet goes to the end of the window of now. A range that cannot be is that of today.
 */
export function rangeOf(name: string, first: string, last: string, now: number): Range {
  const to = Math.floor(now / WINDOW_MS) * WINDOW_MS + WINDOW_MS;
  const today = midnight(now);
  const date = new Date(now);
  const month = (back: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back, 1);
  switch (name) {
    case 'days7':
      return { from: today - 6 * DAY_MS, to };
    case 'days30':
      return { from: today - 29 * DAY_MS, to };
    case 'month':
      return { from: month(0), to };
    case 'lastMonth':
      return { from: month(1), to: month(0) };
    case 'custom': {
      const [from, end] = [dayOf(first), dayOf(last)];
      if (from === null || end === null || end < from || end + DAY_MS - from > LONGEST_MS) break;
      return { from, to: end + DAY_MS };
    }
  }
  return { from: today, to };
}
