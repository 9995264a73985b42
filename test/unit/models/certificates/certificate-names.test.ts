import test from 'ava';
import { askableNames } from '../../../../models/certificates/certificate-names.ts';

test('more names are asked for as far as their authority can be shown them', (t) => {
  const http = { requestedNames: ['a.org'], autoRenew: true, challenge: 'http01' as const };
  const more = ['a.org', 'b.org', '*.a.org'];
  t.deepEqual(askableNames(http, more), ['b.org']);
  t.deepEqual(askableNames({ ...http, challenge: 'dns01' }, more), ['b.org', '*.a.org']);
  t.deepEqual(askableNames({ ...http, autoRenew: false }, more), []);
  t.deepEqual(askableNames({ requestedNames: null, autoRenew: false, challenge: null }, more), []);
  const many = Array.from({ length: 99 }, (_, index) => `n${index}.org`);
  t.deepEqual(askableNames({ ...http, requestedNames: many }, ['x.org', 'y.org']), ['x.org']);
  t.deepEqual(askableNames({ ...http, requestedNames: [...many, 'z.org', 'zz.org'] }, ['x.org']), []);
});
