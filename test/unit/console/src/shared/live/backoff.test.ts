import test from 'ava';
import { pauseBefore } from '../../../../../../console/src/shared/live/backoff.ts';

test('each pause is up to twice the one before, half a minute at most', (t) => {
  t.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 7, 50, 5000].map((attempt) => pauseBefore(attempt, 1)),
    [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000],
  );
});

test('browsers differ by up to half of it', (t) => {
  t.is(pauseBefore(3, 0), 2000);
  t.is(pauseBefore(3, 0.5), 3000);
  t.not(pauseBefore(3), pauseBefore(3));
});
