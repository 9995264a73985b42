// What a form sends, and how two people's edits of one thing come together.
import test from 'ava';
import { changedInput, changedPaths, merge, theirsOf } from '../../../../../../console/src/shared/forms/changes.ts';
import { copy, same, setAt, valueAt } from '../../../../../../console/src/shared/forms/paths.ts';

const PATHS = ['name', 'domains', 'origin.tries', 'origin.websocket', 'content.limit'];
const base = { name: 'a', domains: ['a.com'], origin: { tries: 3, websocket: true, kept: 1 }, content: { limit: 5 } };
const edited = (edits: Record<string, unknown>) => {
  const draft = copy(base) as Record<string, unknown>;
  for (const [path, value] of Object.entries(edits)) setAt(draft, path, value);
  return draft;
};

test('a form sends only the fields that changed', (t) => {
  const draft = edited({ name: 'b', 'content.limit': 6 });
  t.deepEqual(changedPaths(base, draft, PATHS), ['name', 'content.limit']);
  t.deepEqual(changedInput(base, draft, PATHS, []), { name: 'b', content: { limit: 6 } });
  t.deepEqual(changedInput(base, copy(base), PATHS, []), {});
});

test('a group that the server replaces is sent whole', (t) => {
  const draft = edited({ 'origin.tries': 4 });
  t.deepEqual(changedInput(base, draft, PATHS, ['origin']), { origin: { tries: 4, websocket: true, kept: 1 } });
});

test('what the server replaces as a whole is sent with all its fields, once one changed', (t) => {
  t.deepEqual(changedInput(base, edited({ name: 'b' }), ['name', 'domains'], 'all'), { name: 'b', domains: ['a.com'] });
  t.deepEqual(changedInput(base, copy(base), ['name', 'domains'], 'all'), {});
});

test('a field set back to what it was is no change', (t) => {
  t.deepEqual(changedPaths(base, edited({ domains: ['a.com'] }), PATHS), []);
});

for (const { title, mine, theirs, merged, conflicts } of [
  {
    title: 'edits of different fields both survive',
    mine: { name: 'b' },
    theirs: { domains: ['c.com'] },
    merged: { name: 'b', domains: ['c.com'] },
    conflicts: [],
  },
  {
    title: 'edits of different fields of one group both survive',
    mine: { 'origin.tries': 1 },
    theirs: { 'origin.websocket': false },
    merged: { 'origin.tries': 1, 'origin.websocket': false },
    conflicts: [],
  },
  {
    title: 'the same edit by both is no conflict',
    mine: { name: 'x' },
    theirs: { name: 'x' },
    merged: { name: 'x' },
    conflicts: [],
  },
  {
    title: 'different edits of one field are a conflict, and mine stays until a person chooses',
    mine: { name: 'm' },
    theirs: { name: 't' },
    merged: { name: 'm' },
    conflicts: [{ path: 'name', mine: 'm', theirs: 't' }],
  },
  {
    title: 'what I did not touch is theirs',
    mine: {},
    theirs: { name: 't', 'content.limit': 9 },
    merged: { name: 't', 'content.limit': 9 },
    conflicts: [],
  },
]) {
  test(title, (t) => {
    const result = merge(base, edited(mine), edited(theirs), PATHS);
    t.deepEqual(result.merged, edited(merged as Record<string, unknown>));
    t.deepEqual(result.conflicts, conflicts);
  });
}

test('values are compared as JSON, whatever the order of keys', (t) => {
  t.true(same({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }));
  for (const [a, b] of [
    [[], {}],
    [null, {}],
    ['1', 1],
    [
      [1, 2],
      [2, 1],
    ],
    [{ a: 1 }, { a: 1, b: undefined }],
  ])
    t.false(same(a, b));
});

test('a path without a value is undefined', (t) => {
  t.is(valueAt({ a: null }, 'a.b'), undefined);
  t.is(valueAt({ a: { b: 0 } }, 'a.b'), 0);
});

test('of a conflict the other value is kept only where a person said so', (t) => {
  const conflicts = ['name', 'domains', 'content.limit'].map((path) => ({ path, mine: 'm', theirs: 't' }));
  const kept = theirsOf(conflicts, { name: 'theirs', domains: 'mine' });
  t.deepEqual(
    kept.map(({ path }) => path),
    ['name'],
  );
});
