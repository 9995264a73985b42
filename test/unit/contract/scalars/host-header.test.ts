import test from 'ava';
import { normaliseHostHeader } from '../../../../contract/scalars/host-header.ts';

const name253 = `${'a'.repeat(61)}.${'b'.repeat(61)}.${'c'.repeat(61)}.${'d'.repeat(61)}.abcde`;

const ACCEPTED: readonly (readonly [string, string])[] = [
  ['', ''],
  ['a.com', 'a.com'],
  ['A.com:8080', 'a.com:8080'],
  ['internal_service', 'internal_service'],
  ['192.0.2.1', '192.0.2.1'],
  ['192.0.2.1:1', '192.0.2.1:1'],
  ['2001:DB8::1', '2001:db8::1'],
  ['[2001:db8::1]:65535', '[2001:db8::1]:65535'],
  [`${name253}:65535`, `${name253}:65535`],
];
for (const [text, expected] of ACCEPTED) {
  test(`accepted: ${text.slice(0, 40)}`, (t) => t.is(normaliseHostHeader(text), expected));
}

const REFUSED: readonly string[] = [
  ' ',
  'a b',
  'a.com ',
  'a\tb',
  'a"b',
  "a'b",
  'a/b',
  'a\\b',
  'a.com:',
  'a.com:0',
  'a.com:080',
  'a.com:65536',
  'a.com:80:80',
  ':80',
  '[2001:db8::1]',
  '[2001:db8::1]:',
  '[2001:db8::1]80',
  '[192.0.2.1]:80',
  'fe80::1%eth0',
  '127.1',
  'a..b',
  'münchen.de',
  `${name253}a:65535`,
  'a\r\nX: y',
];
for (const text of REFUSED) {
  test(`refused: ${JSON.stringify(text.slice(-30))}`, (t) => t.is(normaliseHostHeader(text), null));
}
