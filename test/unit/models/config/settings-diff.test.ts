// Differences of settings, as an operator reads them.
import test from 'ava';
import { settingsDiff } from '../../../../models/config/settings-diff.ts';

const TABLE: readonly [what: string, from: object, to: object, fields: object[]][] = [
  ['what is the same', { a: 1, b: { c: [1, 2] } }, { a: 1, b: { c: [1, 2] } }, []],
  ['a value', { a: 1 }, { a: 2 }, [{ path: 'a', from: 1, to: 2 }]],
  [
    'a value within',
    { a: { b: { c: 'x', d: 1 } } },
    { a: { b: { c: 'y', d: 1 } } },
    [{ path: 'a.b.c', from: 'x', to: 'y' }],
  ],
  ['null, which is a value', { a: null }, { a: 0 }, [{ path: 'a', from: null, to: 0 }]],
  ['a field that is new', {}, { a: false }, [{ path: 'a', to: false }]],
  ['a field that is gone', { a: '' }, {}, [{ path: 'a', from: '' }]],
  ['a list of words as one field', { a: ['x', 'y'] }, { a: ['y'] }, [{ path: 'a', from: ['x', 'y'], to: ['y'] }]],
  ['a list that is emptied', { a: ['x'] }, { a: [] }, [{ path: 'a', from: ['x'], to: [] }]],
  [
    'a list of things by their numbers',
    { a: [{ b: 1 }, { b: 2 }] },
    { a: [{ b: 1 }, { b: 3 }, { b: 4, c: true }] },
    [
      { path: 'a.1.b', from: 2, to: 3 },
      { path: 'a.2.b', to: 4 },
      { path: 'a.2.c', to: true },
    ],
  ],
  ['a thing that is new by its fields', {}, { a: [{ b: 1 }] }, [{ path: 'a.0.b', to: 1 }]],
  [
    'a thing that is gone by its fields',
    { a: { b: 1, c: 2 } },
    {},
    [
      { path: 'a.b', from: 1 },
      { path: 'a.c', from: 2 },
    ],
  ],
];

for (const [what, from, to, fields] of TABLE)
  test(`tells ${what}`, (t) => t.deepEqual(settingsDiff(from, to), fields as never));

test('fields are in the order of their paths, numbers by their size', (t) => {
  const things = Array.from({ length: 11 }, (_, b) => ({ b }));
  t.deepEqual(
    settingsDiff({}, { a: things }).map(({ path }) => path),
    things.map(({ b }) => `a.${b}.b`),
  );
});

test('what has another form is told as a whole', (t) => {
  t.deepEqual(settingsDiff({ a: { b: 1 } }, { a: 'x' }), [{ path: 'a', from: { b: 1 }, to: 'x' }]);
  t.deepEqual(settingsDiff({ a: { b: 1 } }, { a: null }), [{ path: 'a', from: { b: 1 }, to: null }]);
});
