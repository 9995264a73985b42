import test from 'ava';
import { normaliseOriginAddress, originLiteral } from '../../../../contract/scalars/origin-address.ts';

const ACCEPTED: readonly (readonly [string, string])[] = [
  ['origin', 'origin'],
  ['My_App.internal.', 'my_app.internal'],
  ['münchen.de', 'xn--mnchen-3ya.de'],
  ['192.0.2.1', '192.0.2.1'],
  ['2001:DB8:0::1', '2001:db8::1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
];
for (const [text, expected] of ACCEPTED)
  test(`${text} is ${expected}`, (t) => t.is(normaliseOriginAddress(text), expected));

for (const text of [
  '',
  '127.1',
  '0x7f',
  'a.0x7f',
  '1',
  'a.1',
  '[::1]',
  'fe80::1%1',
  'a b',
  'http://a.com',
  'a.com:80',
  '010.0.0.1',
]) {
  test(`refused: ${JSON.stringify(text)}`, (t) => t.is(normaliseOriginAddress(text), null));
}

test('only literals have an address to judge', (t) => {
  t.is(originLiteral('10.0.0.1'), '10.0.0.1');
  t.is(originLiteral('origin'), null);
});
