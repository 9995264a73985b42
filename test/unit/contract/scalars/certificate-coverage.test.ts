import test from 'ava';
import { requestableName } from '../../../../contract/scalars/certificate-coverage.ts';
import { parseDomain } from '../../../../contract/scalars/domain.ts';

const NAMES: readonly [domain: string, name: string | null][] = [
  ['a.example', 'a.example'],
  ['*.a.example', '*.a.example'],
  ['.a.example', '*.a.example'],
  ['~^a[.]example$', null],
  ['my_shop.a.example', '*.a.example'],
  ['_a.a.example', '*.a.example'],
  ['a.b_c.example', null],
  ['*.b_c.example', null],
  ['.b_c.example', null],
  ['a_b.c_d.example', null],
  ['a_b.example', null],
];
for (const [domain, name] of NAMES) {
  test(`a CA can be asked for ${name ?? 'no name'} to cover ${domain}`, (t) => {
    t.is(requestableName(parseDomain(domain)!), name);
  });
}
