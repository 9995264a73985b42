import test from 'ava';
import fc from 'fast-check';
import {
  formatRedirectSource,
  parseRedirectSource,
  redirectKey,
  sourceOfKey,
} from '../../../../contract/scalars/redirect-source.ts';

const long = (length: number) => `/${'a'.repeat(length - 1)}`;

/** What a text is kept as, and what a node finds it by where that differs. */
const TAKEN: [given: string, kept: string, key?: string][] = [
  ['/a', '/a'],
  ['/a/', '/a/'],
  ['//a', '/a'],
  ['/a/./b/../c', '/a/c'],
  ['/%61', '/a'],
  ['/a%2Fb', '/a/b'],
  ['/a/%2e%2e/b', '/b'],
  ['/a%20b', '/a%20b', '/a b'],
  ['/a%3Fb', '/a%3Fb', '/a?b'],
  ['/a%3fb', '/a%3Fb', '/a?b'],
  ['/100%', '/100%25', '/100%'],
  ['/100%25', '/100%25', '/100%'],
  ['/%2525', '/%2525', '/%25'],
  ['/%zz', '/%25zz', '/%zz'],
  ['/caf%C3%A9', '/café'],
  ['/café', '/café'],
  ['/%C2%A0', '/%C2%A0', '/\u00a0'],
  ['/a#b', '/a%23b', '/a#b'],
  ['/a%23b', '/a%23b', '/a#b'],
  ['/a\\b', '/a\\b'],
  ['example.com/', 'example.com/'],
  ['example.com//a', 'example.com/a'],
  ['example.com./a', 'example.com/a'],
  ['bücher.example/a', 'xn--bcher-kva.example/a'],
  ['a:80/b', 'a:80/b'],
  [long(512), long(512)],
];

test('a source is kept in one form, however it is written', (t) => {
  for (const [given, kept, key = kept] of TAKEN) {
    const source = parseRedirectSource(given)!;
    t.is(source && formatRedirectSource(source), kept, given);
    t.is(redirectKey(source), key);
    t.deepEqual(sourceOfKey(key), source);
    t.deepEqual(parseRedirectSource(kept), source);
  }
});

test('what is no source is refused', (t) => {
  const none = ['', '/', 'a', '//', '/.', '/a/..', '/a b', '/a?b', '/a\u0000', '/a\u00a0b', '/%00', '/%0a', '/%7f'];
  const more = ['/%ff', '/%C3', '/%ED%A0%80', 'Example.com/a', 'exa mple.com/a', 'example.com?/a'];
  for (const text of [...none, ...more]) t.is(parseRedirectSource(text), null, JSON.stringify(text));
});

test('lengths count in bytes, also of the form that is kept', (t) => {
  t.is(parseRedirectSource(long(513)), null);
  t.truthy(parseRedirectSource(`/${'é'.repeat(255)}`));
  t.is(parseRedirectSource(`/${'é'.repeat(256)}`), null);
  t.truthy(parseRedirectSource(`${long(507)}%zz`));
  t.is(parseRedirectSource(`${long(508)}%zz`), null, 'a percent sign is kept with three');
});

test('the kept form of any source is the same source', (t) => {
  const pieces = fc.constantFrom('/', '%', '%2F', '%25', '.', '..', 'a', 'é', '%C3%A9', '%20', '😀', '#', 'x.example');
  fc.assert(
    fc.property(fc.array(pieces, { minLength: 1, maxLength: 10 }), (parts) => {
      const source = parseRedirectSource(parts.join(''));
      if (source) t.deepEqual(parseRedirectSource(formatRedirectSource(source)), source);
    }),
  );
});
