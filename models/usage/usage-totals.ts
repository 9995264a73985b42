// Lengths of the times that usage is summed by, for each site and for all.
export const WINDOW_SECONDS = 300;
export const HOUR_SECONDS = 3600;
export const DAY_SECONDS = 86_400;

/** Start of the window, hour or day that a column's time is in; days are those of UTC. `seconds` may name a column. */
export function startOf(seconds: number | string, column: string): string {
  return `date_bin(make_interval(secs => ${seconds}), ${column}, timestamptz '2000-01-01 00:00:00+00')`;
}
