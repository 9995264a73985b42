// Rows of a live list stay where they are while somebody points at them.
import test from 'ava';
import { heldRows } from '../../../../../../console/src/shared/table/held-rows.ts';

interface Row {
  id: string;
  value: number;
}
const rows = (...ids: string[]): Row[] => ids.map((id) => ({ id, value: 1 }));
const newer = (...ids: string[]): Row[] => ids.map((id) => ({ id, value: 2 }));
const held = (before: readonly Row[], now: readonly Row[]) => {
  const { rows: shown, changed } = heldRows(before, now, ({ id }) => id);
  return { shown: shown.map(({ id, value }) => `${id}${value}`).join(' '), changed };
};

const CASES: [what: string, before: Row[], now: Row[], shown: string, changed: number][] = [
  [
    'another order moves nothing, and values are the new ones',
    rows('a', 'b', 'c'),
    newer('c', 'a', 'b'),
    'a2 b2 c2',
    0,
  ],
  ['one that came is counted', rows('a', 'b'), newer('x', 'a', 'b'), 'a2 b2', 1],
  ['one that went stays as it was, and is counted', rows('a', 'b'), newer('b'), 'a1 b2', 1],
  ['one for another counts twice', rows('a'), newer('x'), 'a1', 2],
  ['nothing before', [], newer('x'), '', 1],
];
for (const [what, before, now, shown, changed] of CASES)
  test(what, (t) => {
    t.deepEqual(held(before, now), { shown, changed });
  });
