import test from 'ava';
import { addressPath } from '../../../../../../console/src/shared/address/address-path.ts';

for (const [text, path] of [
  ['203.0.113.7', '/addresses/203.0.113.7'],
  ['203.0.113.7/32', '/addresses/203.0.113.7'],
  ['203.0.113.99/24', '/addresses/203.0.113.0/24'],
  [' 2001:DB8::1 ', '/addresses/2001:db8::1'],
  ['2001:db8:1:2:3::/64', '/addresses/2001:db8:1:2::/64'],
  ['::ffff:192.0.2.1', '/addresses/192.0.2.1'],
  ['unknown', null],
  ['shop.example', null],
] as const) {
  test(`the page of “${text}” is ${path}`, (t) => {
    t.is(addressPath(text), path);
  });
}
