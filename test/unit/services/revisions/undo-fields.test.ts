// What one change made of settings is taken out of them, and nothing else.
import test from 'ava';
import fc from 'fast-check';
import { undoFields } from '../../../../services/revisions/undo-fields.ts';

const rule = (id: string, expression = 'true') => ({ id, expression });
const A = rule('a');
const B = rule('b');
const X = rule('x');

const CASES: [
  title: string,
  saved: unknown,
  before: unknown,
  after: unknown,
  settings: unknown,
  conflicts?: string[],
][] = [
  ['a field returns to its value', { a: 2, b: 1 }, { a: 1, b: 1 }, { a: 2, b: 1 }, { a: 1, b: 1 }],
  ['a later change of another field stays', { a: 2, b: 9 }, { a: 1, b: 1 }, { a: 2, b: 1 }, { a: 1, b: 9 }],
  ['a field that is newer than both stays', { a: 2, new: 1 }, { a: 1 }, { a: 2 }, { a: 1, new: 1 }],
  ['a field that came is removed', { a: 1, b: 2 }, { a: 1 }, { a: 1, b: 2 }, { a: 1 }],
  ['a field that went comes back', { a: 1 }, { a: 1, b: 2 }, { a: 1 }, { a: 1, b: 2 }],
  ['what has its value of before stays', { a: 1 }, { a: 1 }, { a: 2 }, { a: 1 }],
  ['a later value of the field is a conflict', { a: 3 }, { a: 1 }, { a: 2 }, { a: 3 }, ['a']],
  ['inside of objects', { o: { a: 2, b: 9 } }, { o: { a: 1, b: 1 } }, { o: { a: 2, b: 1 } }, { o: { a: 1, b: 9 } }],
  ['a list of words is one field', { l: ['a', 'c'] }, { l: ['a'] }, { l: ['a', 'b'] }, { l: ['a', 'c'] }, ['l']],
  [
    'elements of lists of one length',
    { l: [{ a: 1 }, { a: 3 }, { a: 9 }] },
    { l: [{ a: 1 }, { a: 2 }, { a: 1 }] },
    { l: [{ a: 1 }, { a: 3 }, { a: 1 }] },
    { l: [{ a: 1 }, { a: 2 }, { a: 9 }] },
  ],
  [
    'a list of another length since',
    { l: [{ a: 2 }, { a: 5 }] },
    { l: [{ a: 1 }] },
    { l: [{ a: 2 }] },
    { l: [{ a: 2 }, { a: 5 }] },
    ['l'],
  ],
  [
    'an added element goes, others stay',
    { r: [rule('a', 'later'), X, B] },
    { r: [A] },
    { r: [A, X] },
    { r: [rule('a', 'later'), B] },
  ],
  [
    'a removed element comes back to its place',
    { r: [A, B, rule('y')] },
    { r: [A, X, B] },
    { r: [A, B] },
    { r: [A, X, B, rule('y')] },
  ],
  [
    'an added element that changed since',
    { r: [A, rule('x', 'later')] },
    { r: [A] },
    { r: [A, X] },
    { r: [A] },
    ['r.x'],
  ],
  ['an element that was removed since', { r: [] }, { r: [A] }, { r: [rule('a', 'new')] }, { r: [] }, ['r.a']],
  ['an order returns', { r: [B, rule('a', 'later')] }, { r: [A, B] }, { r: [B, A] }, { r: [rule('a', 'later'), B] }],
  ['an order that is another since', { r: [X, A, B] }, { r: [A, B, X] }, { r: [B, A, X] }, { r: [X, A, B] }, ['r']],
];

for (const [title, saved, before, after, settings, conflicts = []] of CASES) {
  test(title, (t) => {
    const undone = undoFields(saved, before, after);
    t.deepEqual(undone, { settings, conflicts });
  });
}

const settings = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.oneof(fc.integer({ max: 3 }), fc.array(fc.integer({ max: 2 }))),
);

test('without a later change everything is as before; a second undo changes nothing', (t) => {
  fc.assert(
    fc.property(settings, settings, (before, after) => {
      const once = undoFields(after, before, after);
      t.deepEqual(once, { settings: before, conflicts: [] });
      t.deepEqual(undoFields(once.settings, before, after), once);
    }),
  );
  t.pass();
});
