import test from 'ava';
import fc from 'fast-check';
import { Ring } from '../../../../../services/node-channel/watch/ring.ts';

const LIMITS = { bytes: 100, ageMs: 1000 };
const batch = (from: number, to: number, bytes = 10, at = 0) => ({
  from: BigInt(from),
  to: BigInt(to),
  frame: Buffer.alloc(bytes),
  at,
});

test('a reader gets every batch after its cursor, in order, and then nothing', (t) => {
  const ring = new Ring(5n, LIMITS);
  for (const to of [6, 9, 10]) ring.append(batch(to === 6 ? 5 : to === 9 ? 6 : 9, to));
  const seen: bigint[] = [];
  let cursor = 5n;
  for (;;) {
    const next = ring.next(cursor);
    if (next === 'lost' || next === undefined) break;
    seen.push(next.to);
    cursor = next.to;
  }
  t.deepEqual(seen, [6n, 9n, 10n]);
  t.is(ring.next(10n), undefined);
});

test('a cursor inside a batch gets that batch: it applies to any position between from and to', (t) => {
  const ring = new Ring(5n, LIMITS);
  ring.append(batch(5, 9));
  const next = ring.next(7n);
  t.true(next !== undefined && next !== 'lost' && next.to === 9n);
});

test('cursors before the floor and beyond the head are lost', (t) => {
  const ring = new Ring(5n, LIMITS);
  ring.append(batch(5, 6));
  t.is(ring.next(4n), 'lost');
  t.is(ring.next(7n), 'lost');
});

test('a batch that comes twice or late changes nothing', (t) => {
  const ring = new Ring(5n, LIMITS);
  t.true(ring.append(batch(5, 7)));
  t.false(ring.append(batch(5, 7)));
  t.false(ring.append(batch(5, 6)));
  t.is(ring.head, 7n);
  t.is(ring.bytes, 10);
});

test('a gap empties the ring: only readers at its far side go on', (t) => {
  const ring = new Ring(5n, LIMITS);
  ring.append(batch(5, 6));
  ring.append(batch(8, 9));
  t.is(ring.next(6n), 'lost');
  const next = ring.next(8n);
  t.true(next !== undefined && next !== 'lost' && next.to === 9n);
});

test('bytes and age are bounded, oldest first', (t) => {
  const ring = new Ring(0n, LIMITS);
  for (let to = 1; to <= 20; to++) ring.append(batch(to - 1, to));
  t.is(ring.bytes, 100);
  t.is(ring.floor, 10n);
  ring.append(batch(20, 21, 10, 5000));
  t.is(ring.floor, 20n);
  t.is(ring.next(15n), 'lost');
  ring.trim(7000);
  t.is(ring.bytes, 0);
  t.is(ring.next(21n), undefined);
  t.is(ring.next(20n), 'lost');
});

test('a batch larger than the whole ring is not kept and loses nobody silently', (t) => {
  const ring = new Ring(0n, LIMITS);
  ring.append(batch(0, 1, 500));
  t.is(ring.bytes, 0);
  t.is(ring.head, 1n);
  t.is(ring.next(0n), 'lost');
});

test('whatever arrives, a reader never skips: what it is given continues where it is, or it is told that it is lost', (t) => {
  const arrival = fc.record({
    from: fc.nat(40),
    length: fc.integer({ min: 1, max: 5 }),
    bytes: fc.integer({ min: 1, max: 60 }),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), fc.nat(45), (arrivals, start) => {
      const ring = new Ring(0n, LIMITS);
      let cursor = BigInt(start);
      for (const { from, length, bytes } of arrivals) {
        ring.append(batch(from, from + length, bytes));
        if (ring.bytes > LIMITS.bytes) return false;
        const next = ring.next(cursor);
        if (next === undefined && cursor !== ring.head) return false;
        if (next !== undefined && next !== 'lost') {
          if (next.from > cursor || next.to <= cursor) return false;
          cursor = next.to;
        }
      }
      return true;
    }),
  );
  t.pass();
});
