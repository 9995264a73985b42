import test from 'ava';
import { countedAddress } from '../../../models/attempt.ts';

for (const [ip, counted] of [
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8::/64'],
  ['::1', '::/64'],
  ['64:ff9b::1.2.3.4', '64:ff9b::/64'],
  [null, 'unknown'],
] as const) {
  test(`${ip} counts as ${counted}`, (t) => {
    t.is(countedAddress(ip), counted);
  });
}
