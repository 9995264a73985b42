// How long answers took, counted by nodes in these buckets. The Go side of an edge has the same list
// (agents/caddy/exchange/latency.go), held by a test.

/** Upper bounds in milliseconds; one more bucket is above the last. At most 23. */
export const LATENCY_BOUNDS_MS = [
  1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16_384, 32_768,
] as const;
export const LATENCY_BUCKETS = LATENCY_BOUNDS_MS.length + 1;

/**
 * The upper bound in milliseconds of the bucket that holds a percentile, which is at most twice the percentile from 1 ms on; the
 * highest bound for the bucket above it. Null without counts.
 *
 * @example latencyPercentile([0, 9, 1], 95) // 4
 */
export function latencyPercentile(counts: readonly number[], percent: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  const at = counts.findIndex((count) => {
    below += count;
    return below * 100 >= total * percent;
  });
  return LATENCY_BOUNDS_MS[at] ?? LATENCY_BOUNDS_MS.at(-1)!;
}
