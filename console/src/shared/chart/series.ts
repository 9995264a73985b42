// Values over time: where nothing is known between two of them, and moving from one to the next. Pure.

/** With nothing between two values that are farther apart than `gapMs`: a line over it would be made up. */
export function withGaps(
  times: readonly number[],
  values: readonly (number | null)[],
  gapMs: number,
): { times: number[]; values: (number | null)[] } {
  const drawn: { times: number[]; values: (number | null)[] } = { times: [], values: [] };
  for (const [index, time] of times.entries()) {
    const before = times[index - 1];
    if (before !== undefined && time - before > gapMs) {
      drawn.times.push((before + time) / 2);
      drawn.values.push(null);
    }
    drawn.times.push(time);
    drawn.values.push(values[index] ?? null);
  }
  return drawn;
}

/** Which of the values is at a time: the nearest, or with `holding` the last that has begun by then. Needs one value. */
export function indexAt(times: readonly number[], time: number, holding: boolean): number {
  if (holding)
    return Math.max(
      0,
      times.findLastIndex((start) => start <= time),
    );
  const distance = (place: number) => Math.abs(times[place]! - time);
  return times.reduce((nearest, _, place) => (distance(place) < distance(nearest) ? place : nearest), 0);
}

/**
 * Those of the values that lie in a part of the time, as places from and to (not in it). With `holding` also the one that began
 * before and still counts.
 */
export function placesIn(times: readonly number[], from: number, to: number, holding: boolean): [number, number] {
  const first = times.findIndex((time) => time >= from);
  const end = times.findIndex((time) => time >= to);
  const start = first < 0 ? times.length : first;
  const held = holding && start > 0 && times[start] !== from ? start - 1 : start;
  return [held, Math.max(held, end < 0 ? times.length : end)];
}

/** The time that the values between two places are of, both in it: it ends where the next value begins. */
export function spanOfPlaces(
  times: readonly number[],
  one: number,
  other: number,
  to: number,
): { from: number; to: number } {
  return { from: times[Math.min(one, other)]!, to: times[Math.max(one, other) + 1] ?? to };
}

/** Values that PageUp and PageDown pass over. */
const PAGE = 10;

/** The value that a key leads to from value `at` of `count`; null for other keys. */
export function indexAfter(key: string, at: number, count: number): number | null {
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: -1,
    ArrowDown: -1,
    ArrowRight: 1,
    ArrowUp: 1,
    PageDown: -PAGE,
    PageUp: PAGE,
    Home: -count,
    End: count,
  };
  const step = steps[key];
  return step === undefined || count === 0 ? null : Math.min(count - 1, Math.max(0, at + step));
}
