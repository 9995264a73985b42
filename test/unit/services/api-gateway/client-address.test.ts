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
] as const) {
  test(what, (t) => {
    t.is(clientAddressReader(PROXIES)(request(peer, headers)), expected);
  });
}
