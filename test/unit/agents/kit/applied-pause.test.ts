import test from 'ava';
import { appliedPause } from '../../../../agents/kit/applied-pause.ts';

const PAUSES: [spreadMs: number, random: number, ms: number][] = [
  [0, 0.99, 50],
  [1000, 0, 50],
  [1000, 0.5, 550],
  [4_000_000_000, 0.5, 5050],
];
for (const [spreadMs, random, ms] of PAUSES) {
  test(`asked for ${spreadMs} ms and drawing ${random}, a node waits ${ms} ms`, (t) =>
    t.is(
      appliedPause(spreadMs, () => random),
      ms,
    ));
}
