import test from 'ava';
import { banLink, clientNetwork } from '../../../../../../console/src/shared/address/ban-link.ts';

for (const [address, network] of [
  ['203.0.113.7', '203.0.113.7/32'],
  ['203.0.113.0/24', '203.0.113.0/24'],
  ['2001:DB8:5:6:7::8', '2001:db8:5:6::/64'],
  ['2001:db8:5:6:7::8/128', '2001:db8:5:6::/64'],
  ['2001:db8:5:6::/64', '2001:db8:5:6::/64'],
  ['2001:db8::/48', '2001:db8::/48'],
  ['<b>', null],
  ['', null],
] as const) {
  test(`${address || 'nothing'} is banned as ${network}`, (t) => t.is(clientNetwork(address), network));
}

test('the dialog is filled for an hour, for one site or for all', (t) => {
  const query = { new: '1', cidr: '203.0.113.7/32', duration: '3600' };
  t.deepEqual(banLink('203.0.113.7', 'site-1'), { path: '/bans', query: { ...query, siteId: 'site-1' } });
  t.deepEqual(banLink('203.0.113.7'), { path: '/bans', query });
  t.is(banLink('no address'), null);
});
