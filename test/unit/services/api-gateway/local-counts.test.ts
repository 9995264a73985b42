import test from 'ava';
import { LocalCounts } from '../../../../services/api-gateway/local-counts.ts';

test('the limit passes in a row, what is beyond waits and does not count', (t) => {
  const counts = new LocalCounts(3, 60_000);
  t.deepEqual(
    [0, 1, 2].map((now) => counts.take('a', now)),
    [0, 0, 0],
  );
  t.is(counts.take('a', 1_002), 59_000);
  t.is(counts.take('a', 60_001), 1);
  // More than 60 s after the last request that counted, which was at 2.
  t.is(counts.take('a', 60_002), 1);
  t.is(counts.take('a', 60_003), 0);
});

test('silence starts the count anew, and keys are counted apart', (t) => {
  const counts = new LocalCounts(2, 100);
  t.is(counts.take('a', 0), 0);
  t.is(counts.take('a', 101), 0);
  t.is(counts.take('a', 102), 0);
  t.true(counts.take('a', 103) > 0);
  t.is(counts.take('b', 103), 0);
});

test('the keys that were quiet for longest are forgotten first', (t) => {
  const counts = new LocalCounts(1, 60_000);
  counts.take('busy', 0);
  counts.take('quiet', 1);
  for (let index = 0; index < 9_999; index++) counts.take(`other ${index}`, 2 + index);
  t.is(counts.take('quiet', 20_000) > 0, true);
  t.is(counts.take('busy', 20_000), 0);
});
