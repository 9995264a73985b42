import type { IncomingMessage } from 'node:http';
import test from 'ava';
import { clientAddressReader } from '../../../../services/api-gateway/client-address.ts';

const request = (remoteAddress: string, headers: Record<string, string> = {}) =>
  ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage;

const PROXIES = ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32'];

test('without trusted proxies nobody is believed', (t) => {
  const read = clientAddressReader([]);
  t.is(read(request('203.0.113.9', { 'x-forwarded-for': '1.2.3.4', 'x-real-ip': '1.2.3.4' })), '203.0.113.9');
  t.is(read(request('::ffff:203.0.113.9')), '203.0.113.9');
});

for (const [what, peer, headers, expected] of [
  ['a peer that is no proxy is not believed', '203.0.113.9', { 'x-forwarded-for': '1.2.3.4' }, '203.0.113.9'],
  ['a proxy is believed', '10.1.1.1', { 'x-forwarded-for': '1.2.3.4' }, '1.2.3.4'],
  ['a proxy in IPv4-mapped form is believed', '::ffff:10.1.1.1', { 'x-forwarded-for': '1.2.3.4' }, '1.2.3.4'],
  ['the walk goes from the right', '10.1.1.1', { 'x-forwarded-for': '6.6.6.6, 1.2.3.4' }, '1.2.3.4'],
  ['trusted hops are passed', '10.1.1.1', { 'x-forwarded-for': '1.2.3.4, 192.0.2.7, 10.2.2.2' }, '1.2.3.4'],
  ['all trusted: the first of the chain', '10.1.1.1', { 'x-forwarded-for': '10.9.9.9, 10.2.2.2' }, '10.9.9.9'],
  ['what is no address ends the walk', '10.1.1.1', { 'x-forwarded-for': '1.2.3.4, unknown, 10.2.2.2' }, '10.2.2.2'],
  ['a port is no address', '10.1.1.1', { 'x-forwarded-for': '1.2.3.4:99' }, '10.1.1.1'],
  ['X-Real-IP counts without X-Forwarded-For', '10.1.1.1', { 'x-real-ip': '1.2.3.4' }, '1.2.3.4'],
  ['X-Real-IP does not count beside it', '10.1.1.1', { 'x-forwarded-for': '', 'x-real-ip': '1.2.3.4' }, '10.1.1.1'],
  ['a broken X-Real-IP is ignored', '10.1.1.1', { 'x-real-ip': 'x' }, '10.1.1.1'],
  ['IPv6 proxies', '2001:db8::1', { 'x-forwarded-for': '2001:470::1' }, '2001:470::1'],
  ['IPv4 before IPv6 hops', '2001:db8::1', { 'x-forwarded-for': '1.2.3.4, 2001:db8::2' }, '1.2.3.4'],
  ['one spelling an address', '10.1.1.1', { 'x-forwarded-for': '2001:0470:0:0::00FF' }, '2001:470::ff'],
  ['IPv4-mapped in any spelling', '10.1.1.1', { 'x-forwarded-for': '::FFFF:102:304' }, '1.2.3.4'],
  ['an IPv4-mapped hop is the IPv4 one', '10.1.1.1', { 'x-forwarded-for': '1.2.3.4, ::ffff:10.2.2.2' }, '1.2.3.4'],
  ['a zone is dropped', '10.1.1.1', { 'x-forwarded-for': 'fe80::1%eth0' }, 'fe80::1'],
  ['an address beside a range is not trusted', '192.0.2.8', { 'x-forwarded-for': '1.2.3.4' }, '192.0.2.8'],
  ['a forged entry left of the client is not read', '10.1.1.1', { 'x-forwarded-for': '10.5.5.5, 9.9.9.9' }, '9.9.9.9'],
  [
    'a forged trusted hop is what its sender is',
    '10.1.1.1',
    { 'x-forwarded-for': '9.9.9.9, 8.8.8.8, 10.2.2.2' },
    '8.8.8.8',
  ],
  ['white space', '10.1.1.1', { 'x-forwarded-for': ' 1.2.3.4 ,\t10.2.2.2 ' }, '1.2.3.4'],
  ['an empty entry ends the walk', '10.1.1.1', { 'x-forwarded-for': '1.2.3.4,,10.2.2.2' }, '10.2.2.2'],
  ['leading zeros are no address', '10.1.1.1', { 'x-forwarded-for': '01.2.3.4' }, '10.1.1.1'],
  ['a decimal form is no address', '10.1.1.1', { 'x-forwarded-for': '16909060' }, '10.1.1.1'],
  ['brackets are no address', '10.1.1.1', { 'x-forwarded-for': '[2001:470::1]' }, '10.1.1.1'],
] as const) {
  test(what, (t) => {
    t.is(clientAddressReader(PROXIES)(request(peer, headers)), expected);
  });
}

test('trusted ranges may be written in any form', (t) => {
  const forwarded = { 'x-forwarded-for': '1.2.3.4' };
  for (const [entry, peer] of [
    ['::ffff:10.0.0.0/104', '10.1.1.1'],
    ['2001:DB8:0::/32', '2001:db8::1'],
    ['10.1.1.1/8', '10.9.9.9'],
    ['0.0.0.0/0', '203.0.113.9'],
    ['::/0', '2001:470::1'],
  ] as const) {
    t.is(clientAddressReader([entry])(request(peer, forwarded)), '1.2.3.4', entry);
  }
  t.is(clientAddressReader(['0.0.0.0/0'])(request('2001:470::1', forwarded)), '2001:470::1');
});

test('X-Forwarded-For from a peer that is not trusted is told once a peer, and of 100 peers at most', (t) => {
  for (const trusted of [[], PROXIES]) {
    const told: string[] = [];
    const read = clientAddressReader(trusted, (peer) => told.push(peer));
    const forged = { 'x-forwarded-for': '1.2.3.4' };
    read(request('203.0.113.1'));
    for (let round = 0; round < 2; round++) {
      read(request('::ffff:203.0.113.1', forged));
      read(request('203.0.113.2', forged));
    }
    t.deepEqual(told, ['203.0.113.1', '203.0.113.2']);
    for (let index = 0; index < 300; index++) read(request(`198.51.100.${index % 256}`, forged));
    t.is(told.length, 100);
    if (trusted.length > 0) read(request('10.1.1.1', forged));
    t.is(told.length, 100);
  }
});
