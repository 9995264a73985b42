import test from 'ava';
import { moment, nextTry, renewalTime } from '../../../../services/certificates/acme/failure.ts';
import { nextCheck, windowOf } from '../../../../services/certificates/acme/renewal-times.ts';

const NOW = new Date('2026-03-01T00:00:00Z');
const hours = (count: number) => new Date(NOW.getTime() + count * 3_600_000);

test('an authority is asked again when it says, within a day and not within the hour', (t) => {
  t.deepEqual(nextCheck(null, NOW), hours(6));
  t.deepEqual(nextCheck(hours(3), NOW), hours(3));
  t.deepEqual(nextCheck(hours(0), NOW), hours(1));
  t.deepEqual(nextCheck(hours(500), NOW), hours(24));
});

test('a window has a beginning before its end', (t) => {
  const [start, end] = [hours(1), hours(2)];
  t.deepEqual(windowOf({ start: start.toISOString(), end: end.toISOString() }), { start, end });
  for (const none of [
    null,
    {},
    'soon',
    { start: 'a', end: 'b' },
    { start: end.toISOString(), end: start.toISOString() },
  ]) {
    t.is(windowOf(none), null);
  }
});

test('a moment is in the window, and before the certificate ends', (t) => {
  const window = { start: hours(10), end: hours(20) };
  t.deepEqual(moment(window, hours(99), 0.5), hours(15));
  t.deepEqual(moment(window, hours(12), 0.9), new Date(hours(12).getTime() - 60_000));
});

test('an order that failed is followed by one after a tenth of what is left, within bounds; a first one by one in an hour', (t) => {
  for (const [left, wait] of [
    [null, 1],
    [-5, 1 / 6],
    [0, 1 / 6],
    [1, 1 / 6],
    [5 / 3, 1 / 6],
    [20, 2],
    [119, 11.9],
    [120, 12],
    [2000, 12],
  ] as const) {
    t.deepEqual(nextTry(NOW, left === null ? null : hours(left)), hours(wait), String(left));
  }
});

test('without a word of the authority a certificate is renewed after two thirds of its life, a minute before its end at the latest', (t) => {
  t.deepEqual(renewalTime(NOW, hours(90)), hours(60));
  t.deepEqual(renewalTime(hours(-0.01), hours(0.01)), new Date(hours(0.01).getTime() - 60_000));
});
