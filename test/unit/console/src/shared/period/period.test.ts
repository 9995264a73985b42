// Ranges of charts, and what an address says of a part of them.
import test from 'ava';
import { lengthOf, zoomedOf } from '../../../../../../console/src/shared/period/period.ts';

test('a range has its length', (t) => {
  t.is(lengthOf('1h'), 3_600_000);
  t.is(lengthOf('30d'), 30 * 86_400_000);
});

test('two times of an address are a part only if the first is before the second', (t) => {
  const [from, to] = ['2026-11-27T10:00:00.000Z', '2026-11-27T11:00:00.000Z'];
  t.deepEqual(zoomedOf(from, to), { from: Date.parse(from), to: Date.parse(to) });
  for (const [one, other] of [
    ['', ''],
    [to, from],
    [from, from],
    ['x', to],
    [from, ''],
  ])
    t.is(zoomedOf(one!, other!), null);
});
