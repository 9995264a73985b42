import test from 'ava';
import { readCursor, writeCursor } from '../../../../services/usage/cursor.ts';

test('a cursor leads back to its place; what was never written is none', (t) => {
  const place = { windowStart: Date.parse('2026-03-10T12:35:00Z'), siteId: '0198c0de-1111-7000-8000-000000000000' };
  const cursor = writeCursor(place);
  t.true(cursor.length <= 200);
  t.deepEqual(readCursor(cursor), place);
  for (const text of ['', 'x', `${cursor}x`, `${cursor}=`, Buffer.from('2 1 a').toString('base64url')]) {
    t.is(readCursor(text), null, text);
  }
  // Bits that base64 ignores make no second name of a place.
  t.is(readCursor(Buffer.from('1 01 a').toString('base64url')), null);
});
