// Lists of things in a form: each keeps its key wherever it goes.
import test from 'ava';
import { insertedAt, keysFor, movedTo, removedAt } from '../../../../../../console/src/shared/forms/items.ts';

const list = { items: ['a', 'b', 'c'], keys: [1, 2, 3] };

test('places that stay keep their keys, and what was added gets new ones', (t) => {
  let last = 3;
  const next = () => ++last;
  t.deepEqual(keysFor([1, 2, 3], 2, next), [1, 2]);
  t.deepEqual(keysFor([1, 2, 3], 5, next), [1, 2, 3, 4, 5]);
});

test('what is removed comes back at its place, with its key', (t) => {
  const without = removedAt(list, 1);
  t.deepEqual(without, { items: ['a', 'c'], keys: [1, 3] });
  t.deepEqual(insertedAt(without, 1, 'b', 2), list);
});

test('things move within the list and not out of it', (t) => {
  t.deepEqual(movedTo(list, 0, 2), { items: ['b', 'c', 'a'], keys: [2, 3, 1] });
  t.deepEqual(movedTo(list, 2, 1), { items: ['a', 'c', 'b'], keys: [1, 3, 2] });
  for (const to of [-1, 3, 0]) t.is(movedTo(list, 0, to), list);
});
