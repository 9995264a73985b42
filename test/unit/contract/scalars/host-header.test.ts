import test from 'ava';
import { normaliseHostHeader } from '../../../../contract/scalars/host-header.ts';

const name253 = `${'a'.repeat(61)}.${'b'.repeat(61)}.${'c'.repeat(61)}.${'d'.repeat(61)}.abcde`;

const ACCEPTED: readonly (readonly [string, string])[] = [
  ['', ''],
  ['a.com', 'a.com'],
  ['A.com:8080', 'a.com:8080'],
  ['internal_service', 'internal_service'],
  ['münchen.example', 'xn--mnchen-3ya.example'],
  ['MÜNCHEN.example:8080', 'xn--mnchen-3ya.example:8080'],
  ['münchen.example.', 'xn--mnchen-3ya.example'],
  ['例え.jp', 'xn--r8jz45g.jp'],
  ['faß.de:1', 'xn--fa-hia.de:1'],
  ['ａ.com', 'a.com'],
  ['xn--mnchen-3ya.example', 'xn--mnchen-3ya.example'],
  ['api_ü.internal', 'xn--api_-3ra.internal'],
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
  'münchen.de:',
  'mün\u3000chen.de',
  'münchen.de/x',
  'münchen.de\\x',
  'mün"chen.de',
  'münchen.de\uff0fx',
  'münchen.de\uff1a80',
  'user@münchen.de',
  '\uff11\uff12\uff17.0.0.1',
  `${'ü'.repeat(130)}.example`,
  `${name253}a:65535`,
  'a\r\nX: y',
];
for (const text of REFUSED) {
  test(`refused: ${JSON.stringify(text.slice(-30))}`, (t) => t.is(normaliseHostHeader(text), null));
}
