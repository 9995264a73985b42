import test from 'ava';
import fc from 'fast-check';
import { isDomainPattern } from '../../../../contract/scalars/domain-pattern.ts';

const ACCEPTED: readonly string[] = [
  'a\\.com',
  '^[a-z]+\\.shop\\.a\\.com$',
  'shop[0-9]{1,3}\\.a\\.com',
  '(www|shop)\\.(a|b)\\.com',
  '(a|b)(c|d)(e|f)(g|h)',
  'a|b|c',
  '[^a-c]x',
  '[-a]',
  '[a-]',
  '\\d\\w\\-\\.',
  '[\\w\\-]',
  'a?b?c?d?',
  'a*?b+?',
  'a{3}',
  'a{2,}',
  '.x',
  '\\bshop\\b',
  'a'.repeat(256),
];
for (const text of ACCEPTED) test(`allowed: ${text.slice(0, 40)}`, (t) => t.true(isDomainPattern(text)));

const REFUSED: readonly (readonly [string, string])[] = [
  ['nothing', ''],
  ['more than 256 characters', 'a'.repeat(257)],
  ['an upper-case letter', 'A'],
  ['an upper-case class', '\\D'],
  ['a quote', "a'b"],
  ['a double quote', 'a"b'],
  ['white space', 'a b'],
  ['a tab', 'a\tb'],
  ['a double backslash', 'a\\\\b'],
  ['a comma outside a count', 'a,b'],
  ['an escaped comma', 'a\\,b'],
  ['a comma in a class', '[a,b]'],
  ['three repeating quantifiers', 'a*b*c*'],
  ['a third repeating count', 'a+b+c{2,3}'],
  ['17 combinations', '(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q)'],
  ['32 combinations', '(a|b)(c|d)(e|f)(g|h)(i|j)'],
  ['a quantified group', '(a|b)+'],
  ['a quantified anchor', '^*a'],
  ['a quantified word boundary', '\\b*'],
  ['stacked quantifiers', 'a**'],
  ['a possessive quantifier', 'a*+'],
  ['a lookahead', '(?=a)'],
  ['a non-capturing group', '(?:a)'],
  ['a back reference', '(a)\\1'],
  ['an open group', '(a'],
  ['a lone closing parenthesis', 'a)'],
  ['an open class', '[a'],
  ['an empty class', '[]'],
  ['an empty negated class', '[^]'],
  ['a POSIX class', '[[:alpha:]]'],
  ['a reversed range', '[z-a]'],
  ['a range to a class', '[a-\\d]'],
  ['a hyphen in the middle', '[a-c-e]'],
  ['a lone bracket', 'a]'],
  ['a lone brace', 'a}'],
  ['a brace that is no count', 'a{x}'],
  ['a reversed count', 'a{3,2}'],
  ['a count above 1000', 'a{1001}'],
  ['a leading zero in a count', 'a{01}'],
  ['a trailing backslash', 'a\\'],
  ['an unknown escape', '\\q'],
  ['a letter beyond ASCII', 'ä'],
];
for (const [title, text] of REFUSED) test(`refused: ${title}`, (t) => t.false(isDomainPattern(text)));

test('whatever is allowed compiles, and matches hosts in bounded time', (t) => {
  const unit = fc.constantFrom(...'abz09.*+?{}[]()|^$\\-,12d');
  let allowed = 0;
  fc.assert(
    fc.property(fc.string({ unit, minLength: 1, maxLength: 24 }), (text) => {
      if (!isDomainPattern(text)) return true;
      allowed += 1;
      return typeof new RegExp(`^(?:${text})$`).test(`${'a'.repeat(200)}.example.com`) === 'boolean';
    }),
    { numRuns: 50_000 },
  );
  t.true(allowed > 100);
});
