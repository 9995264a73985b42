// The columns that all sums of statistics have, and what of the counts of the edge is in them.

/** Amounts, in the order of the tables. */
export const AMOUNTS = [
  'requests',
  'bytes_sent',
  'bytes_received',
  'cache_hits',
  'cache_misses',
  's1',
  's2',
  's3',
  's4',
  's5',
] as const;
export type Amount = (typeof AMOUNTS)[number];

/** Lengths of the sums in seconds, with the tables that hold them. */
export const LEVELS = {
  60: 'traffic_minute',
  300: 'traffic_window',
  3600: 'traffic_hour',
  86400: 'traffic_day',
} as const;
export type LevelSeconds = 60 | 300 | 3600 | 86400;

/** Days for which sums of each length are kept. Counts older than the windows are dropped when they arrive. */
export const KEPT_DAYS = { traffic_minute: 1, traffic_window: 8, traffic_hour: 90, traffic_day: 365 } as const;
/** Counts that are older when they arrive do not become statistics. */
export const LATEST_DAYS = 7;

/** Start of the time of so many seconds that a column's time is in, of days the UTC day. */
export const startOf = (seconds: number, column: string) =>
  `date_bin(interval '${seconds} seconds', ${column}, timestamptz '2000-01-01 00:00:00+00')`;

export const list = (write: (amount: Amount) => string) => AMOUNTS.map(write).join(', ');

/** Adds rows to the sums that are there; `t` is the table. */
export const ADD = `on conflict (kind, id, starts_at) do update set
  ${list((amount) => `${amount} = t.${amount} + excluded.${amount}`)},
  figures = figures_sum(t.figures, excluded.figures, 1)`;
