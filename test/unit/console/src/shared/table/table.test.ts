// What a table does apart from being drawn: order, columns, moving between rows, selecting a stretch.
import test from 'ava';
import {
  type Column,
  hiddenAtFirst,
  optional,
  readHidden,
  shownOf,
} from '../../../../../../console/src/shared/table/column.ts';
import { rowAfter, stretch } from '../../../../../../console/src/shared/table/rows.ts';
import { directionOf, knownSort, nextSort } from '../../../../../../console/src/shared/table/sort.ts';

test('a heading is sorted by in its first direction, then the other way round', (t) => {
  t.is(nextSort('', 'name'), 'name');
  t.is(nextSort('name', 'name'), '-name');
  t.is(nextSort('-name', 'name'), 'name');
  t.is(nextSort('name', '-updatedAt'), '-updatedAt');
  t.is(nextSort('-updatedAt', '-updatedAt'), 'updatedAt');
});

test('a heading says how it is sorted', (t) => {
  t.is(directionOf('name', 'name'), 'ascending');
  t.is(directionOf('-name', 'name'), 'descending');
  t.is(directionOf('updatedAt', '-updatedAt'), 'ascending');
  t.is(directionOf('-updatedAt', 'name'), 'none');
  t.is(directionOf('', 'name'), 'none');
});

test('an address can ask for any order, and gets one there is', (t) => {
  const fields = ['name', 'createdAt'];
  for (const [asked, expected] of [
    ['name', 'name'],
    ['-createdAt', '-createdAt'],
    ['--name', '-createdAt'],
    ['-', '-createdAt'],
    ['', '-createdAt'],
    ['id', '-createdAt'],
    [undefined, '-createdAt'],
    [['name'], '-createdAt'],
  ] as const)
    t.is(knownSort(asked, fields, '-createdAt'), expected, JSON.stringify(asked));
});

const columns: Column[] = [
  { key: 'name', label: 'Name' },
  { key: 'state', label: 'State' },
  { key: 'cpu', label: 'CPU' },
  { key: 'actions', label: 'Actions', kind: 'actions' },
];
const keys = (shown: readonly Column[]) => shown.map(({ key }) => key);

test('all columns but the name and the actions can be left out', (t) => {
  t.deepEqual(keys(optional(columns)), ['state', 'cpu']);
  t.deepEqual(keys(shownOf(columns, ['cpu'])), ['name', 'state', 'actions']);
  t.deepEqual(keys(shownOf(columns, ['name', 'actions', 'gone'])), keys(columns));
});

test('what the browser kept may be anything', (t) => {
  t.deepEqual(readHidden('["cpu"]'), ['cpu']);
  for (const kept of [null, '', '{', '7', 'null', '{"cpu":true}']) t.is(readHidden(kept), null, String(kept));
  t.deepEqual(readHidden('["cpu",7,null]'), ['cpu']);
});

test('where there is little room, columns for wide screens are left out until somebody asks for them', (t) => {
  const columns: Column[] = [
    { key: 'name', label: 'Name' },
    { key: 'cpu', label: 'CPU', wideOnly: true },
    { key: 'state', label: 'State' },
  ];
  t.deepEqual(hiddenAtFirst(columns, false), []);
  t.deepEqual(hiddenAtFirst(columns, true), ['cpu']);
  t.deepEqual(
    shownOf(columns, hiddenAtFirst(columns, true)).map(({ key }) => key),
    ['name', 'state'],
  );
});

test('arrows move between rows and stop at the ends', (t) => {
  t.is(rowAfter('ArrowDown', 0, 3), 1);
  t.is(rowAfter('ArrowDown', 2, 3), 2);
  t.is(rowAfter('ArrowUp', 0, 3), 0);
  t.is(rowAfter('ArrowUp', 2, 3), 1);
  t.is(rowAfter('Home', 2, 3), 0);
  t.is(rowAfter('End', 0, 3), 2);
  t.is(rowAfter('Tab', 1, 3), null);
});

test('a stretch is what lies between two rows, whichever was first', (t) => {
  const rows = ['a', 'b', 'c', 'd'];
  const between = (from: string | null, to: string) => stretch(rows, (row) => row, from, to);
  t.deepEqual(between('b', 'd'), ['b', 'c', 'd']);
  t.deepEqual(between('d', 'b'), ['b', 'c', 'd']);
  t.deepEqual(between(null, 'c'), ['c']);
  t.deepEqual(between('elsewhere', 'c'), ['c']);
  t.deepEqual(between('a', 'elsewhere'), []);
});
