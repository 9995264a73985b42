// Which time usage is shown of.
import test from 'ava';
import { dayOf, dayText, RANGES, rangeOf } from '../../../../../../console/src/features/usage/range.ts';

const now = Date.parse('2026-03-15T14:07:31.250Z');
const iso = (name: string, first = '', last = '', at = now) => {
  const { from, to } = rangeOf(name, first, last, at);
  return `${new Date(from).toISOString().slice(0, 16)} ${new Date(to).toISOString().slice(0, 16)}`;
};

test('ranges begin with days and months of UTC and go to the end of the present window', (t) => {
  t.is(iso('today'), '2026-03-15T00:00 2026-03-15T14:10');
  t.is(iso('days7'), '2026-03-09T00:00 2026-03-15T14:10');
  t.is(iso('days30'), '2026-02-14T00:00 2026-03-15T14:10');
  t.is(iso('month'), '2026-03-01T00:00 2026-03-15T14:10');
  t.is(iso('lastMonth'), '2026-02-01T00:00 2026-03-01T00:00');
  t.is(iso('lastMonth', '', '', Date.parse('2026-01-01T00:00:00Z')), '2025-12-01T00:00 2026-01-01T00:00');
});

test('days of choice are both in the range; what cannot be is today', (t) => {
  t.is(iso('custom', '2026-02-27', '2026-03-01'), '2026-02-27T00:00 2026-03-02T00:00');
  t.is(iso('custom', '2026-03-01', '2026-03-01'), '2026-03-01T00:00 2026-03-02T00:00');
  for (const [first, last] of [
    ['2026-03-02', '2026-03-01'],
    ['', '2026-03-01'],
    ['2026-02-30', '2026-03-01'],
    ['2024-03-01', '2026-03-01'],
    ['x', 'y'],
  ] as const) {
    t.is(iso('custom', first, last), iso('today'));
  }
  t.is(iso('whatever'), iso('today'));
});

test('every range is one that the console takes, whatever the time', (t) => {
  for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += 7 * 3_600_000 + 11) {
    for (const name of RANGES) {
      const { from, to } = rangeOf(name, '', '', at);
      t.true(from < to && from % 300_000 === 0 && to % 300_000 === 0 && to - from <= 400 * 86_400_000);
    }
  }
});

test('a day is read as it is written', (t) => {
  t.is(dayOf(dayText(now)), Date.parse('2026-03-15T00:00:00Z'));
  for (const text of ['', '2026-3-1', '2026-02-29', '2026-13-01', '2026-03-15T00:00']) t.is(dayOf(text), null, text);
});
