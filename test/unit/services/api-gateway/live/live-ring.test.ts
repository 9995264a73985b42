import test from 'ava';
import { LiveRing } from '../../../../../services/api-gateway/live/live-ring.ts';

const entry = (id: string) => ({ id, hints: [`sites ${id}`] });
const ids = (hints: string[] | 'lost') => (hints === 'lost' ? hints : hints.map((hint) => hint.slice(6)));

test('what comes after a cursor, up to a place, in order and each once', (t) => {
  const ring = new LiveRing('10-0');
  ring.append([entry('11-0'), entry('11-1'), entry('12-0')]);
  t.deepEqual(ids(ring.between('10-0', '12-0')), ['11-0', '11-1', '12-0']);
  t.deepEqual(ids(ring.between('11-0', '12-0')), ['11-1', '12-0']);
  t.deepEqual(ids(ring.between('11-0', '11-1')), ['11-1']);
  t.deepEqual(ids(ring.between('12-0', '12-0')), []);
});

test('numbers are compared as numbers', (t) => {
  const ring = new LiveRing('9-9');
  ring.append([entry('10-2'), entry('10-10')]);
  t.deepEqual(ids(ring.between('10-2', '10-10')), ['10-10']);
});

test('a cursor before its floor or beyond its head is lost', (t) => {
  const ring = new LiveRing('12-0', [entry('11-0'), entry('12-0')]);
  t.is(ring.between('10-9', '12-0'), 'lost');
  t.is(ring.between('12-1', '12-0'), 'lost');
  t.deepEqual(ids(ring.between('11-0', '12-0')), ['12-0']);
});

test('an entry that comes twice is kept once', (t) => {
  const ring = new LiveRing('1-0');
  ring.append([entry('2-0')]);
  ring.append([entry('2-0'), entry('3-0')]);
  t.deepEqual(ids(ring.between('1-0', '3-0')), ['2-0', '3-0']);
});

test('it is bounded: the oldest go, and with them the cursors before', (t) => {
  const ring = new LiveRing('0-1');
  for (let index = 1; index <= 3_500; index++) ring.append([entry(`${index}-0`)]);
  t.is(ring.between('499-0', '3500-0'), 'lost');
  t.is((ring.between('500-0', '3500-0') as string[]).length, 3_000);
});

test('a cursor for what arrived since a time', (t) => {
  const ring = new LiveRing('3000-0', [entry('1000-0'), entry('2000-0'), entry('3000-0')]);
  t.is(ring.before(2500), '2000-0');
  t.is(ring.before(3001), '3000-0');
  // Nothing earlier is known than the first.
  t.is(ring.before(5), '1000-0');
});
