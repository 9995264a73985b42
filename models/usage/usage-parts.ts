// A range of usage as few sums: whole days and hours where they are whole, windows at its edges.
import { DAY_SECONDS, HOUR_SECONDS, WINDOW_SECONDS } from './usage-totals.ts';

/** Lengths of what is summed, in seconds, the longest first. */
const LENGTHS = [DAY_SECONDS, HOUR_SECONDS, WINDOW_SECONDS] as const;

/** A time without a gap, of sums of one length. */
export interface UsagePart {
  seconds: number;
  /** Milliseconds. */
  from: number;
  to: number;
}

/**
 * The parts of a range, in order, none of them longer than `longest` seconds: at most five. `from` and `to`, in
 * milliseconds, are multiples of five minutes.
 */
export function usageParts(from: number, to: number, longest: number = DAY_SECONDS): UsagePart[] {
  return split(
    from,
    to,
    LENGTHS.filter((seconds) => seconds <= longest),
  );
}

function split(from: number, to: number, [seconds, ...shorter]: readonly number[]): UsagePart[] {
  if (seconds === undefined || from >= to) return [];
  const ms = seconds * 1000;
  const first = Math.ceil(from / ms) * ms;
  const last = Math.floor(to / ms) * ms;
  if (first >= last) return split(from, to, shorter);
  return [...split(from, first, shorter), { seconds, from: first, to: last }, ...split(last, to, shorter)];
}
