// Medians, percentiles and bootstrap intervals of small samples.

/** The p-th percentile (0 to 100) by linear interpolation; NaN of an empty sample. */
export function percentile(sample: readonly number[], p: number): number {
  if (sample.length === 0) return Number.NaN;
  const sorted = [...sample].sort((a, b) => a - b);
  const rank = (p / 100) * (sorted.length - 1);
  const low = Math.floor(rank);
  const high = Math.ceil(rank);
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (rank - low);
}

export const median = (sample: readonly number[]): number => percentile(sample, 50);

export interface Interval {
  median: number;
  low: number;
  high: number;
}

/**
 * The median with its 95 % bootstrap interval (2,000 resamples from a fixed seed, so that the same sample always
 * prints the same interval).
 */
export function medianInterval(sample: readonly number[]): Interval {
  const random = seeded(42);
  const medians: number[] = [];
  for (let round = 0; round < 2000; round++) {
    medians.push(median(sample.map(() => sample[Math.floor(random() * sample.length)]!)));
  }
  return { median: median(sample), low: percentile(medians, 2.5), high: percentile(medians, 97.5) };
}

/** mulberry32: small, fast, good enough to resample with. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Median with its interval and the 99th percentile, as figures. */
export function summary(sample: readonly number[]) {
  const interval = medianInterval(sample);
  return {
    p50Ms: round2(interval.median),
    p50Interval: [round2(interval.low), round2(interval.high)],
    p99Ms: round2(percentile(sample, 99)),
  };
}

/** Two decimals, for figures people read. */
export const round2 = (value: number): number => Math.round(value * 100) / 100;
