import test from 'ava';
import { LATENCY_BOUNDS_MS, LATENCY_BUCKETS, latencyPercentile } from '../../../contract/latency-buckets.ts';

test('a percentile is the upper bound of its bucket, and at most twice the real value from 1 ms on', (t) => {
  t.is(latencyPercentile([], 50), null);
  t.is(latencyPercentile([0, 0], 95), null);
  t.is(latencyPercentile([1], 50), 1);
  t.is(latencyPercentile([0, 95, 5], 95), 2);
  t.is(latencyPercentile([0, 94, 6], 95), 4);
  t.is(latencyPercentile([...Array(LATENCY_BUCKETS - 1).fill(0), 1], 50), 32_768);
  for (const [index, bound] of LATENCY_BOUNDS_MS.entries()) {
    t.true(index === 0 || bound <= 2 * LATENCY_BOUNDS_MS[index - 1]!);
  }
});
