import test from 'ava';
import fc from 'fast-check';
import { formatDomain, parseDomain } from '../../../../contract/scalars/domain.ts';

const canonical = (text: string) => {
  const domain = parseDomain(text);
  return domain && formatDomain(domain);
};

const ACCEPTED: readonly (readonly [string, string])[] = [
  ['a.com', 'a.com'],
  ['  A.Com.  ', 'a.com'],
  ['https://a.com:8443/path?x#y', 'a.com'],
  ['HTTP://a.com', 'a.com'],
  ['a.com:80', 'a.com'],
  ['a.com/x', 'a.com'],
  ['*.a.com', '*.a.com'],
  ['*.A.com.', '*.a.com'],
  ['.a.com', '.a.com'],
  ['localhost', 'localhost'],
  ['*.lan', '*.lan'],
  ['.lan', '.lan'],
  ['münchen.de', 'xn--mnchen-3ya.de'],
  ['MÜNCHEN.de', 'xn--mnchen-3ya.de'],
  // Non-transitional: sharp s stays itself.
  ['faß.de', 'xn--fa-hia.de'],
  ['*.例え.jp', '*.xn--r8jz45g.jp'],
  ['ａ.com', 'a.com'],
  ['xn--mnchen-3ya.de', 'xn--mnchen-3ya.de'],
  [`${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
  ['1a.2b.com', '1a.2b.com'],
  ['a_b.com', 'a_b.com'],
  ['_dmarc.A.com', '_dmarc.a.com'],
  ['a_.com', 'a_.com'],
  ['*.a_b.com', '*.a_b.com'],
  ['._tcp.a.com', '._tcp.a.com'],
  ['http://my_shop.a.com:8080/x', 'my_shop.a.com'],
  ['ü_b.com', 'xn--_b-wka.com'],
];
for (const [text, expected] of ACCEPTED) {
  test(`${text} is ${expected}`, (t) => t.is(canonical(text), expected));
}

const long = `${'a'.repeat(61)}.${'b'.repeat(61)}.${'c'.repeat(61)}.${'d'.repeat(61)}`;
const REFUSED: readonly string[] = [
  '',
  '.',
  '*',
  '*.',
  'a',
  'a..com',
  '-a.com',
  'a-.com',
  'a b.com',
  'a%41.com',
  'user@a.com',
  '*.*.a.com',
  'a.*.com',
  '**.a.com',
  '..a.com',
  '1.2.3.4',
  '127.1',
  'a.0x7f',
  '[::1]',
  '::1',
  'a.com:x',
  'a.com\\b',
  'ftp://a.com',
  '１.２.３.４',
  `${'a'.repeat(64)}.com`,
  `${long}.abcdef`,
  `a.com/${'x'.repeat(1024)}`,
];
for (const text of REFUSED) {
  test(`refused: ${text.length} characters ${JSON.stringify(text.slice(0, 40))}`, (t) => t.is(parseDomain(text), null));
}

test('a name may have 253 characters, its marker included', (t) => {
  const name = `${long}.abcde`;
  t.is(name.length, 253);
  t.is(canonical(name), name);
  t.is(parseDomain(`.${name}`), null);
  t.is(canonical(`.${name.slice(1)}`), `.${name.slice(1)}`);
});

test('the canonical text is its own canonical text', (t) => {
  fc.assert(
    fc.property(fc.domain(), fc.constantFrom('', '*.', '.'), (name, marker) => {
      const text = canonical(marker + name);
      return text === null || canonical(text) === text;
    }),
  );
  t.pass();
});

test('never throws, whatever the text', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
      parseDomain(text);
      return true;
    }),
    { numRuns: 5000 },
  );
  t.pass();
});
