import test from 'ava';
import { parseDomain } from '../../../../contract/scalars/domain.ts';
import { registeredDomain, usedNames } from '../../../../services/certificates/acme/names.ts';

const used = (names: string[], domains: string[]) =>
  usedNames(
    names,
    domains.map((text) => parseDomain(text)!),
  );

test('a name is used by whatever domain its visitors are found by', (t) => {
  const names = ['example.org', 'a.example.org', 'b.a.example.org', '*.example.org', '*.a.example.org'];
  t.deepEqual(used(names, ['example.org']), ['example.org']);
  t.deepEqual(used(names, ['a.example.org']), ['a.example.org', '*.example.org']);
  t.deepEqual(used(names, ['*.example.org']), ['a.example.org', '*.example.org']);
  t.deepEqual(used(names, ['.example.org']), names.slice(1));
  t.deepEqual(used(names, ['other.org']), []);
  t.deepEqual(used(names, ['example.org', '~^a[.]example[.]org$']), [
    'example.org',
    'a.example.org',
    // What a pattern has below a wildcard is not known.
    '*.example.org',
    '*.a.example.org',
  ]);
});

test('the registered domain is one label below the public suffix', (t) => {
  for (const [name, expected] of [
    ['example.org', 'example.org'],
    ['a.b.example.org', 'example.org'],
    ['*.example.org', 'example.org'],
    ['shop.example.co.uk', 'example.co.uk'],
    ['www.t.co', 't.co'],
    ['a.github.io', 'a.github.io'],
    ['x.b.github.io', 'b.github.io'],
    ['*.c.github.io', 'c.github.io'],
    ['www.xn--fiqs8s.xn--fiqs8s', 'xn--fiqs8s.xn--fiqs8s'],
    ['a.xn--mgbaam7a8h', 'a.xn--mgbaam7a8h'],
    ['www.city.kawasaki.jp', 'city.kawasaki.jp'],
    ['a.b.ck', 'a.b.ck'],
    // Suffixes themselves, and what no list knows.
    ['co.uk', 'co.uk'],
    ['github.io', 'github.io'],
    ['*.github.io', 'github.io'],
    ['a.example.internal', 'example.internal'],
    ['_dmarc.example.com', 'example.com'],
  ] as const) {
    t.is(registeredDomain(name), expected, name);
  }
});
