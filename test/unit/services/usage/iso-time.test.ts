import test from 'ava';
import fc from 'fast-check';
import { isoTime } from '../../../../services/usage/iso-time.ts';

test('a time is written as Date writes it', (t) => {
  const last = Date.parse('9999-12-31T23:59:59.999Z');
  const times = fc.oneof(fc.integer({ min: 0, max: last }), fc.integer({ min: -Date.parse('2000-01-01'), max: 0 }));
  fc.assert(fc.property(times, (time) => isoTime(time) === new Date(time).toISOString()));
  t.is(isoTime(last), '9999-12-31T23:59:59.999Z');
});
