// Interval sets refuse elements that overlap, and letting nft merge them shortened bans (a long one took the end of a short
// one). So overlaps are resolved here: disjoint ranges, each with the latest end of the prefixes that cover it.
import { type Cidr, endOf } from '../bans/cidr.ts';

export interface TimedCidr {
  cidr: Cidr;
  remainingMs: number;
}

export interface TimedRange {
  start: bigint;
  end: bigint;
  remainingMs: number;
}

/** Disjoint ranges in ascending order that ban every address exactly as long as the longest prefix covering it. */
export function resolveOverlaps(prefixes: readonly TimedCidr[]): TimedRange[] {
  const sorted = [...prefixes].sort((left, right) => {
    if (left.cidr.start !== right.cidr.start) return left.cidr.start < right.cidr.start ? -1 : 1;
    return left.cidr.bits - right.cidr.bits;
  });
  const ranges: TimedRange[] = [];
  /** Open prefixes, outermost first; an inner one carries the latest end of all around it. */
  const open: { end: bigint; remainingMs: number }[] = [];
  let at = 0n;
  const emit = (end: bigint, remainingMs: number): void => {
    if (end < at) return;
    const last = ranges.at(-1);
    if (last && last.end + 1n === at && last.remainingMs === remainingMs) last.end = end;
    else ranges.push({ start: at, end, remainingMs });
    at = end + 1n;
  };
  const closeBefore = (start: bigint | undefined): void => {
    for (let top = open.at(-1); top && (start === undefined || top.end < start); top = open.at(-1)) {
      emit(top.end, top.remainingMs);
      open.pop();
    }
  };
  for (const { cidr, remainingMs } of sorted) {
    closeBefore(cidr.start);
    const around = open.at(-1);
    if (around) emit(cidr.start - 1n, around.remainingMs);
    else at = cidr.start;
    open.push({ end: endOf(cidr), remainingMs: Math.max(remainingMs, around?.remainingMs ?? 0) });
  }
  closeBefore(undefined);
  return ranges;
}
