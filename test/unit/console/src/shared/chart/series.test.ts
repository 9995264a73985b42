// Values over time, before they are drawn.
import test from 'ava';
import {
  indexAfter,
  indexAt,
  placesIn,
  spanOfPlaces,
  withGaps,
} from '../../../../../../console/src/shared/chart/series.ts';

test('between two values that are too far apart there is nothing', (t) => {
  t.deepEqual(withGaps([0, 10, 40], [1, 2, 3], 15), { times: [0, 10, 25, 40], values: [1, 2, null, 3] });
  t.deepEqual(withGaps([0, 10], [1, null], 15), { times: [0, 10], values: [1, null] });
  t.deepEqual(withGaps([], [], 15), { times: [], values: [] });
});

test('at a time is the nearest value, or that which has begun by then', (t) => {
  const times = [0, 10, 20];
  t.deepEqual(
    [-5, 4, 6, 19, 99].map((time) => indexAt(times, time, false)),
    [0, 0, 1, 2, 2],
  );
  t.deepEqual(
    [-5, 4, 6, 19, 99].map((time) => indexAt(times, time, true)),
    [0, 0, 0, 1, 2],
  );
});

test('keys lead from value to value and stop at the ends', (t) => {
  const cases: readonly [string, number, number | null][] = [
    ['ArrowLeft', 5, 4],
    ['ArrowLeft', 0, 0],
    ['ArrowRight', 19, 19],
    ['PageUp', 5, 15],
    ['PageDown', 5, 0],
    ['Home', 5, 0],
    ['End', 5, 19],
    ['Tab', 5, null],
  ];
  for (const [key, at, to] of cases) t.is(indexAfter(key, at, 20), to, key);
  t.is(indexAfter('Home', 0, 0), null);
});

test('a part of the time has the values in it, and with sums the one that began before', (t) => {
  const times = [0, 10, 20, 30];
  t.deepEqual(placesIn(times, 10, 30, false), [1, 3]);
  t.deepEqual(placesIn(times, 10, 30, true), [1, 3]);
  t.deepEqual(placesIn(times, 15, 30, false), [2, 3]);
  t.deepEqual(placesIn(times, 15, 30, true), [1, 3]);
  t.deepEqual(placesIn(times, 40, 50, false), [4, 4]);
  t.deepEqual(placesIn(times, 40, 50, true), [3, 4]);
  t.deepEqual(placesIn([], 0, 10, true), [0, 0]);
});

test('a selection lasts until the value after it begins, in whichever direction it was made', (t) => {
  t.deepEqual(spanOfPlaces([0, 10, 20], 0, 1, 30), { from: 0, to: 20 });
  t.deepEqual(spanOfPlaces([0, 10, 20], 2, 1, 30), { from: 10, to: 30 });
});
