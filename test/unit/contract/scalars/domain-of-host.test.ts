import test from 'ava';
import { parseDomain } from '../../../../contract/scalars/domain.ts';
import { domainOf } from '../../../../contract/scalars/domain-of-host.ts';

const DOMAINS = ['~x[0-9]\\.[a-z.]+', '.b.com', '*.a.b.com', '.a.b.com', 'x1.a.b.com', 'b.com'].map(
  (text) => parseDomain(text)!,
);

test('a host belongs to the domain that nodes find it by', (t) => {
  const found = (host: string) => domainOf(host, DOMAINS);
  t.is(found('b.com'), 'b.com');
  t.is(found('x1.a.b.com'), 'x1.a.b.com');
  t.is(found('x2.a.b.com'), '*.a.b.com');
  t.is(found('y.x2.a.b.com'), '.a.b.com');
  t.is(found('a.b.com'), '.b.com');
  t.is(found('x3.other'), '~x[0-9]\\.[a-z.]+');
  t.is(found('elsewhere.com'), null);
});
