// Ranges of time that charts show: their lengths, and the part of them that somebody zoomed into. Pure.

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000 };

/** `6h`, `30d` in milliseconds. */
export function lengthOf(range: string): number {
  return Number.parseInt(range, 10) * UNIT_MS[range.at(-1) ?? '']!;
}

/** Milliseconds. */
export interface Zoomed {
  from: number;
  to: number;
}

/** What two times of an address mean; null where they mean nothing. */
export function zoomedOf(from: string, to: string): Zoomed | null {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return start < end ? { from: start, to: end } : null;
}
