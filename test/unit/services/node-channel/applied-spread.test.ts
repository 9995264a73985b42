import test from 'ava';
import { appliedSpread } from '../../../../services/node-channel/applied-spread.ts';

const SPREADS: [nodes: number, ms: number][] = [
  [0, 0],
  [1, 0],
  [50, 0],
  [51, 1],
  [1000, 950],
  [2050, 2000],
  [10_000, 2000],
];
for (const [nodes, ms] of SPREADS) {
  test(`${nodes} nodes spread their reports over ${ms} ms`, (t) => t.is(appliedSpread(nodes), ms));
}
