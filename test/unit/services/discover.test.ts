import test from 'ava';
import { discoverServices, formerNames } from '../../../services/discover.ts';

test('a former name of a service in SERVICES runs the service, once, and is told', async (t) => {
  const services = ['site-waf', 'waf', 'bans'];
  t.deepEqual(formerNames(services), [{ former: 'site-waf', name: 'waf' }]);
  const found = await discoverServices({ role: 'all', services });
  t.deepEqual(
    found.map(({ name }) => name),
    ['waf', 'bans'],
  );
});

test('without SERVICES no name is a former one', (t) => {
  t.deepEqual(formerNames(null), []);
});
