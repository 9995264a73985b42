import test from 'ava';
import { AddressRefused, isAllowed, resolveChecked, specialRange } from '../../../proto/address-policy.ts';

const SPECIAL: readonly (readonly [string, string])[] = [
  ['0.0.0.0', '0.0.0.0/8'],
  ['10.255.255.255', '10.0.0.0/8'],
  ['100.64.0.1', '100.64.0.0/10'],
  ['127.0.0.1', '127.0.0.0/8'],
  ['169.254.169.254', '169.254.0.0/16'],
  ['172.31.255.255', '172.16.0.0/12'],
  ['192.0.0.8', '192.0.0.0/24'],
  ['192.0.2.1', '192.0.2.0/24'],
  ['192.88.99.1', '192.88.99.0/24'],
  ['192.168.1.1', '192.168.0.0/16'],
  ['198.19.0.1', '198.18.0.0/15'],
  ['198.51.100.1', '198.51.100.0/24'],
  ['203.0.113.9', '203.0.113.0/24'],
  ['224.0.0.1', '224.0.0.0/4'],
  ['255.255.255.255', '240.0.0.0/4'],
  ['::', '::/128'],
  ['::1', '::1/128'],
  ['100::1', '100::/64'],
  ['2001:db8::1', '2001:db8::/32'],
  ['fd00::1', 'fc00::/7'],
  ['fe80::1%eth0', 'fe80::/10'],
  ['ff02::1', 'ff00::/8'],
  ['::ffff:10.0.0.1', '10.0.0.0/8'],
  ['::ffff:7f00:1', '127.0.0.0/8'],
  ['64:ff9b::169.254.169.254', '169.254.0.0/16'],
  ['64:ff9b:1::7f00:1', '64:ff9b:1::/48'],
  ['::127.0.0.1', '127.0.0.0/8'],
  ['::7f00:1', '::/96'],
  ['2001::1', '2001::/23'],
  ['2001:1::1', '2001::/23'],
  ['2001:1ff:ffff::1', '2001::/23'],
  ['2002:7f00:1::', '2002::/16'],
  ['2002:a9fe:a9fe::1', '2002::/16'],
  ['3fff::1', '3fff::/20'],
  ['5f00::1', '5f00::/16'],
  ['fec0::1', 'fec0::/10'],
];
const ORDINARY = [
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '172.15.0.1',
  '172.32.0.0',
  '192.0.1.1',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2001:200::1',
  '2003::1',
  '64:ff9b:2::1',
  '100:0:0:1::',
  '2001:db9::1',
  '2606:4700::1111',
  '::ffff:1.1.1.1',
  '64:ff9b::101:101',
];

test('every special-purpose range is known, also behind mapped and NAT64 addresses', (t) => {
  for (const [address, range] of SPECIAL) t.is(specialRange(address), range, address);
  for (const address of ORDINARY) t.is(specialRange(address), null, address);
});

test('what is no address is refused, never let through', (t) => {
  for (const text of ['', 'localhost', '127.1', '0x7f.0.0.1', '1.2.3.4/8', '1.2.3']) {
    t.throws(() => specialRange(text), { instanceOf: TypeError }, text);
  }
});

test('an allow list exempts what it covers and nothing else', (t) => {
  t.true(isAllowed('10.1.2.3', ['10.1.0.0/16']));
  t.false(isAllowed('10.2.0.1', ['10.1.0.0/16']));
  t.true(isAllowed('::ffff:10.1.2.3', ['10.1.0.0/16']));
  t.false(isAllowed('fd00::1', ['10.1.0.0/16', 'fd01::/16']));
});

test('one forbidden address refuses the host', async (t) => {
  const refused = await t.throwsAsync(resolveChecked('localhost', [], 3000), { instanceOf: AddressRefused });
  t.is(refused.reason, 'forbidden');
  t.truthy(refused.range);
  const literal = await t.throwsAsync(resolveChecked('[::1]', [], 3000), { instanceOf: AddressRefused });
  t.is(literal.range, '::1/128');
});

test('a host whose addresses are allowed answers the addresses to connect to', async (t) => {
  t.deepEqual(await resolveChecked('127.0.0.1', ['127.0.0.0/8'], 3000), ['127.0.0.1']);
  const addresses = await resolveChecked('localhost', ['127.0.0.0/8', '::1/128'], 3000);
  t.true(addresses.length > 0 && addresses.every((address) => specialRange(address) !== null));
});

test('a name without an address is unresolvable', async (t) => {
  const refused = await t.throwsAsync(resolveChecked('no-such-host.invalid', [], 5000), { instanceOf: AddressRefused });
  t.true(refused.reason === 'unresolvable' || refused.reason === 'timeout');
});

// Spellings of loopback that only a resolver reads as an address.
for (const host of ['2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0x7f.1', 'localhost.', '[::ffff:127.0.0.1]']) {
  test(`${host} is refused as what it resolves to`, async (t) => {
    const refused = await t.throwsAsync(resolveChecked(host, [], 3000), { instanceOf: AddressRefused });
    t.true(refused.reason === 'forbidden' || refused.reason === 'unresolvable', refused.reason);
  });
}
