import test from 'ava';
import {
  FILTER_NAMES,
  filterInput,
  filterOf,
  NO_FILTERS,
  setFilters,
  takesFilter,
} from '../../../../../../console/src/features/logs/filters.ts';
import { logs } from '../../../../../../contract/resources/logs.ts';

test('every filter of the query is one of the page', (t) => {
  const others = ['id', 'from', 'to', 'cursor', 'limit'];
  const wanted = Object.keys(logs.query.input.properties).filter((name) => !others.includes(name));
  t.deepEqual([...FILTER_NAMES].sort(), wanted.sort());
});

test('filters of the address are what the query takes; a value that it refuses is none', (t) => {
  const filters = {
    ...NO_FILTERS,
    status: '404',
    ip: '203.0.113.7',
    path: '/a b',
    asn: 'x',
    cidr: '1.2.3',
    method: '',
  };
  t.deepEqual(filterInput(filters), { ip: '203.0.113.7', path: '/a b', status: 404 });
  t.deepEqual(
    setFilters(filters).map(({ name }) => name),
    ['ip', 'path', 'status'],
  );
});

for (const [name, good, bad] of [
  ['requestId', 'x'.repeat(128), 'x'.repeat(129)],
  ['ip', '2001:db8::1', '203.0.113.0/24'],
  ['cidr', '203.0.113.0/24', '203.0.113'],
  ['status', '599', '600'],
  ['statusClass', '5', '6'],
  ['blockReason', 'any', 'none'],
  ['cacheStatus', 'HIT', 'hit'],
  ['country', 'DE', 'de'],
  ['asn', '4294967295', '4294967296'],
  ['minDuration', '0', '-1'],
  ['ja4', 'x'.repeat(36), ''],
] as const)
  test(`the filter ${name} takes ${good.slice(0, 20)} and not "${bad.slice(0, 20)}"`, (t) => {
    t.true(takesFilter(name, good));
    t.false(takesFilter(name, bad));
  });

test('a typed country or method is written in capitals', (t) => {
  t.is(filterOf('country', ' de '), 'DE');
  t.is(filterOf('method', 'post'), 'POST');
  t.is(filterOf('path', '/Ab'), '/Ab');
});
