import test from 'ava';
import { scaleOf } from '../../../../../../console/src/shared/chart/scale.ts';

for (const [values, ticks] of [
  [[], [0, 1]],
  [
    [0, 0],
    [0, 1],
  ],
  [
    [3, 1],
    [0, 1, 2, 3],
  ],
  [[1599], [0, 500, 1000, 1500, 2000]],
  [[10], [0, 2.5, 5, 7.5, 10]],
  [[0.034], [0, 0.01, 0.02, 0.03, 0.04]],
] as const)
  test(`the axis of ${JSON.stringify(values)} is marked at ${ticks.join(', ')}`, (t) => {
    const scale = scaleOf(values);
    t.deepEqual(scale.ticks, [...ticks]);
    t.deepEqual(scale.range, [0, ticks.at(-1)!]);
  });

test('marks are no closer than asked, and between them there are none of its parts', (t) => {
  t.deepEqual(scaleOf([2], 1).ticks, [0, 1, 2]);
  t.deepEqual(scaleOf([10], 1).ticks, [0, 3, 6, 9, 12]);
  t.deepEqual(scaleOf([1e6], 1).ticks, [0, 250_000, 500_000, 750_000, 1_000_000]);
});

test('whatever the values, they fit below few round marks', (t) => {
  for (let largest = 1e-3; largest < 1e7; largest *= 1.37) {
    const { range, ticks } = scaleOf([largest]);
    t.true(range[1] >= largest && range[1] <= largest * 2.5, String(largest));
    t.true(ticks.length >= 2 && ticks.length <= 6, String(ticks));
  }
});
