// What holds for every source, valid or not.
import test from 'ava';
import fc from 'fast-check';
import { cacheBuilderOf, cacheConditionOf } from '../../../../contract/expression/cache-builder.ts';
import { checkCacheCondition, checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import { FIELDS } from '../../../../contract/expression/fields.ts';
import { formatTree } from '../../../../contract/expression/format.ts';
import { FUNCTIONS } from '../../../../contract/expression/functions.ts';
import { conditions, values } from '../../../helpers/expressions.ts';

const PHASE = { phase: 'waf-custom' } as const;
const WORDS = [
  ...FIELDS.keys(),
  ...FUNCTIONS.keys(),
  ...'and or not eq in strict wildcard matches { } ( ) [ ] ,'.split(' '),
];
const TEXTS = ['"a"', '"(a|[^b])*"', '"\\u0041\\', '10.0.0.0/8', '$a', '-1', '\u{1f600}', '\u0000', ' '];

test('the canonical text of what is valid is valid, is its own, and has the same facts', (t) => {
  let valid = 0;
  const stable = (source: string, check: typeof checkCondition | typeof checkValue) => {
    const first = check(source, PHASE);
    // A random one can be too large.
    if (!first.valid) return t.regex(first.error.code, /^(too_|functions_too_deep)/, source);
    valid++;
    const text = formatTree(first.tree);
    const second = check(text, PHASE);
    if (!second.valid) return t.is(second.error.code, 'too_long', text);
    t.is(formatTree(second.tree), text);
    t.deepEqual(second.facts, first.facts);
  };
  fc.assert(
    fc.property(conditions, (source) => void stable(source, checkCondition)),
    { numRuns: 200 },
  );
  fc.assert(
    fc.property(values, (source) => void stable(source, checkValue)),
    { numRuns: 200 },
  );
  t.true(valid > 200);
});

test('no input makes the checker throw; what is wrong is in the source or at its end', (t) => {
  const soup = fc
    .array(fc.constantFrom(...WORDS, ...TEXTS), { maxLength: 60 })
    .chain((parts) => fc.constantFrom('', ' ').map((space) => parts.join(space)));
  const source = fc.oneof(soup, fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ unit: 'grapheme' }));
  fc.assert(
    fc.property(source, (text) => {
      for (const result of [checkCondition(text, PHASE), checkValue(text, PHASE), checkCacheCondition(text)]) {
        if (result.valid) continue;
        t.true(result.error.position >= 0 && result.error.position <= text.length, text);
      }
    }),
    { numRuns: 400 },
  );
});

test('every start of a valid source, and it with one character changed, gets an answer', (t) => {
  fc.assert(
    fc.property(conditions, fc.nat(), fc.constantFrom('', '"', '(', '\\', '{', 'é', ' '), (source, at, put) => {
      const index = at % (source.length + 1);
      for (const text of [source.slice(0, index), source.slice(0, index) + put + source.slice(index + 1)]) {
        const result = checkCondition(text, PHASE);
        t.true(result.valid || result.error.position <= text.length);
      }
    }),
    { numRuns: 200 },
  );
});

test('sources that are deep or long in every way are answered, not run out of stack', (t) => {
  const long = 16_384;
  for (const part of [
    '(',
    'not ',
    'lower(',
    'concat(lower(',
    '{',
    '[',
    '"',
    '\\',
    '$',
    'a',
    'true and ',
    '"\\u',
    ',',
  ]) {
    const source = part.repeat(Math.floor(long / part.length));
    t.false(checkCacheCondition(source).valid);
    t.false(checkCacheCondition(`http.host matches ${JSON.stringify(source)}`.slice(0, long)).valid);
  }
  for (const part of ['(', '((a)', '[', '[^', 'a{', 'a*', '\\', '|', '(|', '.*']) {
    for (const count of [10, 64, 85, 128, 256]) {
      const result = checkCondition(`http.host matches ${JSON.stringify(part.repeat(count))}`, PHASE);
      t.true(result.valid || /^regex_/.test(result.error.code));
    }
  }
});

test('the form of a cache rule and its condition say the same, back and forth', (t) => {
  const path = fc.string({ minLength: 1, maxLength: 20 }).map((text) => `/${text}`);
  const extension = fc.string({ unit: fc.constantFrom(...'abz019'), minLength: 1, maxLength: 16 });
  const form = fc.record({
    pathPrefixes: fc.uniqueArray(path, { maxLength: 32 }),
    paths: fc.uniqueArray(path, { maxLength: 32 }),
    extensions: fc.uniqueArray(extension, { maxLength: 64 }),
  });
  fc.assert(
    fc.property(form, (builder) => {
      const result = checkCacheCondition(cacheConditionOf(builder));
      if (!result.valid) return t.fail(result.error.code);
      t.deepEqual(result.facts.capabilities, []);
      const read = cacheBuilderOf(result.tree)!;
      t.deepEqual(read.pathPrefixes, builder.pathPrefixes);
      t.deepEqual([...read.paths].sort(), [...builder.paths].sort());
      t.deepEqual(read.extensions, [...builder.extensions].sort());
      t.is(cacheConditionOf(read), formatTree(result.tree));
    }),
    { numRuns: 100 },
  );
});
