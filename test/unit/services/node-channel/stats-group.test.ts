import test from 'ava';
import { laneOf, takeGroup } from '../../../../services/node-channel/stats-group.ts';

const batch = (name: string, rows: number, completeUntil: number | null, rules = 0) => ({
  name,
  batch: { rows: Array.from({ length: rows }) as never[], completeUntil, rules, lists: 0 },
});
const late = (name: string, rows: number) => batch(name, rows, null);
const current = (name: string, rows: number) => batch(name, rows, 1);
const names = ({ group, left }: { group: { name: string }[]; left: { name: string }[] }) =>
  [group, left].map((some) => some.map(({ name }) => name).join(' '));
const LIMITS = { current: 100, late: 30 };

test('a batch is late when its node has more after it; questions are not', (t) => {
  t.is(laneOf(late('', 1).batch), 'late');
  t.is(laneOf(current('', 1).batch), 'current');
  t.is(laneOf(late('', 0).batch), 'current');
});

test('what piled up goes in pieces and does not hold up the running minutes', (t) => {
  const waiting = [late('a', 20), late('b', 20), current('c', 60), late('d', 1), current('e', 30), current('f', 20)];
  t.deepEqual(names(takeGroup(waiting, LIMITS)), ['a c e', 'b d f']);
  t.deepEqual(names(takeGroup([late('b', 20), late('d', 1), current('f', 20)], LIMITS)), ['b d f', '']);
  t.deepEqual(names(takeGroup([], LIMITS)), ['', '']);
});

test('the running minutes do not hold up what piled up either, and none is too large to be taken', (t) => {
  const waiting = [current('a', 500), current('b', 1), late('c', 50), late('d', 1)];
  t.deepEqual(names(takeGroup(waiting, LIMITS)), ['a c', 'b d']);
});

test('what is counted of rules takes room, too', (t) => {
  const waiting = [batch('a', 10, 1, 80), current('b', 20), batch('c', 5, null, 20), late('d', 10)];
  t.deepEqual(names(takeGroup(waiting, LIMITS)), ['a c', 'b d']);
});
