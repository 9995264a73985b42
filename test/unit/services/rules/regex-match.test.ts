// The matcher of patterns against JavaScript's, where both mean the same: on bytes, without flags.
import test from 'ava';
import fc from 'fast-check';
import { parseRegex } from '../../../../contract/expression/regex.ts';
import { regexFind, regexMatches } from '../../../../services/rules/evaluate/regex-match.ts';
import { compileRegex } from '../../../../services/rules/evaluate/regex-program.ts';
import { pattern } from '../../../helpers/expressions.ts';

/** `.` of the subset is any byte but \n; JavaScript's leaves out \r too. Outside of classes only. */
const inJavaScript = (source: string) =>
  source.replace(/\[[^\]]*\]|\\.|\./g, (part) => (part === '.' ? '[^\\n]' : part));

test('the match and its groups are those of JavaScript', (t) => {
  const subject = fc.string({ unit: fc.constantFrom('a', 'b', 'x', '/', '1', ' ', '\n', '\r', '\xff'), maxLength: 12 });
  let matched = 0;
  fc.assert(
    fc.property(pattern, subject, (source, text) => {
      const program = compileRegex(parseRegex(source));
      const expected = new RegExp(inJavaScript(source), 'd').exec(text);
      t.is(regexMatches(program, text), expected !== null, JSON.stringify([source, text]));
      const found = regexFind(program, text);
      if (expected) matched++;
      t.deepEqual(
        found,
        expected && expected.indices!.flatMap((pair) => pair ?? [-1, -1]),
        JSON.stringify([source, text]),
      );
    }),
    { numRuns: 1000 },
  );
  t.true(matched > 300);
});

test('anchors, boundaries and classes over bytes', (t) => {
  const rows: [string, string, boolean][] = [
    ['^a$', 'a\n', false],
    ['^a$', 'a', true],
    ['', '', true],
    ['\\bfoo\\b', 'a foo!', true],
    ['\\bfoo\\b', 'afoo', false],
    ['\\Boo', 'foo', true],
    ['\\b', '\xff', false],
    ['\\x41', 'A', true],
    ['[\\x00-\\x1f]', '\x07', true],
    ['[^\\x00-\\x7f]', '\x80', true],
    ['a{2,3}', 'a', false],
    ['^a{2,3}$', 'aaaa', false],
    ['^a{0}$', '', true],
    ['^[-a]+$', 'a-', true],
    ['x{1000}', 'x'.repeat(999), false],
    ['x{1000}', 'x'.repeat(1000), true],
  ];
  for (const [source, text, expected] of rows) {
    t.is(regexMatches(compileRegex(parseRegex(source)), text), expected, source);
  }
});
