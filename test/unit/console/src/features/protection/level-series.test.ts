import test from 'ava';
import { levelSeries } from '../../../../../../console/src/features/protection/level-series.ts';
import type { Level } from '../../../../../../contract/scalars/challenge.ts';

const START = Date.parse('2026-11-21T12:00:00Z');
const MINUTE = 60_000;
const at = (minutes: number) => START + minutes * MINUTE;
const change = (minutes: number, node: string | null, previousLevel: Level, level: Level) => ({
  occurredAt: new Date(at(minutes)).toISOString(),
  previousLevel,
  level,
  node: node === null ? null : { id: node },
});
/** "minute:level" of each point. */
const points = ({ times, values }: { times: number[]; values: number[] }) =>
  times.map((time, index) => `${(time - START) / MINUTE}:${values[index]}`).join(' ');

for (const [name, changes, nodes, expected] of [
  ['no change: the present level all the time', [], [{ id: 'a', level: 'js' }], '0:2 60:2'],
  [
    'before its first change a node had what that came from',
    [change(30, 'a', 'cookie302', 'js')],
    [{ id: 'a', level: 'js' }],
    '0:1 30:2 60:2',
  ],
  [
    'the order of events does not matter',
    [change(40, 'a', 'js', 'normal'), change(20, 'a', 'normal', 'js')],
    [{ id: 'a', level: 'normal' }],
    '0:0 20:2 40:0 60:0',
  ],
  [
    'the highest of all nodes counts',
    [change(10, 'a', 'normal', 'js'), change(20, 'b', 'normal', 'captcha'), change(30, 'b', 'captcha', 'normal')],
    [
      { id: 'a', level: 'js' },
      { id: 'b', level: 'normal' },
    ],
    '0:0 10:2 20:4 30:2 60:2',
  ],
  [
    'a change below the highest draws nothing',
    [change(10, 'b', 'normal', 'js')],
    [
      { id: 'a', level: 'captcha' },
      { id: 'b', level: 'js' },
    ],
    '0:4 60:4',
  ],
  [
    'events outside of the time are left out',
    [change(-5, 'a', 'normal', 'js')],
    [{ id: 'a', level: 'js' }],
    '0:2 60:2',
  ],
  [
    'a node that is gone still counts',
    [change(10, null, 'normal', 'pow'), change(20, null, 'pow', 'normal')],
    [],
    '0:0 10:3 20:0 60:0',
  ],
] as const) {
  test(name, (t) => t.is(points(levelSeries(changes, nodes, at(0), at(60))), expected));
}
