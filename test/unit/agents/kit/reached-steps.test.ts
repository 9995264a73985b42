import test from 'ava';
import { ReachedSteps } from '../../../../agents/kit/reached-steps.ts';

test('each position is told once, with how long ago it was enforced', (t) => {
  let now = 1000;
  const steps = new ReachedSteps(() => now);
  steps.reached(1n, 5n);
  now += 2;
  steps.reached(1n, 5n);
  steps.reached(1n, 6n);
  now += 8;
  t.deepEqual(
    steps.take().map(({ number, agoMicros }) => [number, agoMicros]),
    [
      [5n, 10_000],
      [6n, 8_000],
    ],
  );
  t.deepEqual(steps.take(), []);
});

test('steps of an earlier history are not told, and of many the latest 32', (t) => {
  const steps = new ReachedSteps(() => 0);
  steps.reached(1n, 5n);
  for (let number = 1n; number <= 40n; number++) steps.reached(2n, number);
  const told = steps.take();
  t.is(told.length, 32);
  t.is(told[0]!.number, 9n);
  t.is(told.at(-1)!.number, 40n);
});
