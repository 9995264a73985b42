import test from 'ava';
import { hitRatio } from '../../../../../../console/src/features/cache/hit-ratio.ts';

test('the hit ratio is that of hits and misses, or of bytes sent; without any there is none', (t) => {
  const sums = { hits: 3, misses: 1, hitBytes: 50, bytesSent: 200 };
  t.is(hitRatio(sums, 'requests'), 0.75);
  t.is(hitRatio(sums, 'bytes'), 0.25);
  t.is(hitRatio({ hits: 0, misses: 0, hitBytes: 0, bytesSent: 0 }, 'requests'), null);
  t.is(hitRatio({ hits: 0, misses: 0, hitBytes: 0, bytesSent: 0 }, 'bytes'), null);
  // Bytes of hits count when they have left, bytes sent as they flow.
  t.is(hitRatio({ ...sums, hitBytes: 300 }, 'bytes'), 1);
});
