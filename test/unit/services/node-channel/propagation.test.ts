import test from 'ava';
import fc from 'fast-check';
import { Propagation } from '../../../../services/node-channel/propagation.ts';

const MINUTE = 60_000;
const epoch = 1n;
const batch = (from: bigint, to: bigint) => ({ epoch, from, to });
const at = (number: bigint, time: number) => [{ number, at: time }];

/** Two nodes of one cluster. */
function pair(): Propagation {
  const propagation = new Propagation();
  propagation.joined('a', 'c');
  propagation.joined('b', 'c');
  return propagation;
}

test('a batch is over when the last connected node has it, and that node is named', (t) => {
  const propagation = pair();
  propagation.pushed('c', 'config', batch(4n, 5n), 1000);
  propagation.reached('a', 'config', epoch, at(5n, 1080), 1090);
  t.deepEqual(propagation.take(1100), []);
  propagation.reached('b', 'config', epoch, at(5n, 1050), 1200);
  t.deepEqual(propagation.take(1200), [
    { clusterId: 'c', feed: 'config', epoch, from: 4n, to: 5n, nodes: 2, reached: 2, lastAt: 1080, lastNode: 'a' },
  ]);
  t.deepEqual(propagation.take(2 * MINUTE), []);
});

test('one acknowledgement stands for everything before it, at the time of its step', (t) => {
  const propagation = new Propagation();
  propagation.joined('a', 'c');
  for (const to of [1n, 2n, 3n]) propagation.pushed('c', 'bans', batch(to - 1n, to), 1000 + Number(to));
  propagation.reached('a', 'bans', epoch, [...at(2n, 1050), ...at(3n, 1060)], 1200);
  t.deepEqual(
    propagation.take(1200).map(({ to, lastAt }) => [to, lastAt]),
    [
      [1n, 1050],
      [2n, 1050],
      [3n, 1060],
    ],
  );
});

test('a batch that a node does not get is over after a minute, without it', (t) => {
  const propagation = pair();
  propagation.pushed('c', 'bans', batch(0n, 7n), 1000);
  propagation.reached('a', 'bans', epoch, at(7n, 1010), 1010);
  t.deepEqual(propagation.take(1999), []);
  // Told once when it is slow; what is written adds up to two nodes, one of which has it.
  t.like(propagation.take(2000)[0], { nodes: 2, reached: 0, lastAt: null, lastNode: null });
  t.deepEqual(propagation.take(1000 + MINUTE - 1), []);
  t.like(propagation.take(1000 + MINUTE)[0], { nodes: 0, reached: 1, lastAt: 1010, lastNode: 'a' });
  propagation.reached('b', 'bans', epoch, at(7n, 90_000), 90_000);
  t.deepEqual(propagation.take(200_000), []);
});

test('nothing is expected of a node that left, came later, or may not take the batch', (t) => {
  const propagation = pair();
  propagation.joined('old', 'c');
  propagation.pushed('c', 'config', batch(0n, 1n), 1000, ['old']);
  propagation.joined('late', 'c');
  propagation.reached('late', 'config', epoch, at(1n, 1020), 1020);
  propagation.reached('old', 'config', epoch, at(1n, 1020), 1020);
  propagation.reached('a', 'config', epoch, at(1n, 1010), 1010);
  t.deepEqual(propagation.take(1020), []);
  propagation.left('b');
  t.like(propagation.take(1020)[0], { nodes: 1, reached: 1, lastAt: 1010, lastNode: 'a' });
});

test('without a node there is nothing to measure', (t) => {
  const propagation = new Propagation();
  propagation.pushed('c', 'config', batch(0n, 1n), 1000);
  propagation.joined('a', 'c');
  propagation.pushed('c', 'config', batch(1n, 2n), 1000);
  propagation.left('a');
  t.deepEqual(propagation.take(2 * MINUTE), []);
});

test('a node is believed within what it can know', (t) => {
  const propagation = pair();
  propagation.pushed('c', 'config', batch(0n, 1n), 1000);
  propagation.reached('a', 'config', epoch, at(1n, 5), 1100);
  t.like(propagation.take(1000 + MINUTE)[0], { lastAt: 1000 });
  propagation.pushed('c', 'config', batch(1n, 2n), 2000);
  propagation.reached('a', 'config', epoch, at(2n, 99_000), 2100);
  t.like(propagation.take(2000 + MINUTE)[0], { lastAt: 2100 });
});

test('positions of another history count for nothing', (t) => {
  const propagation = pair();
  propagation.reached('a', 'bans', 9n, at(100n, 900), 900);
  propagation.pushed('c', 'bans', batch(0n, 1n), 1000);
  propagation.reached('a', 'bans', 9n, at(100n, 1100), 1100);
  t.like(propagation.take(1000 + MINUTE)[0], { reached: 0, lastAt: null, lastNode: null });
  // A new history starts over.
  propagation.pushed('c', 'bans', { epoch: 2n, from: 0n, to: 1n }, 70_000);
  propagation.reached('a', 'bans', 2n, at(1n, 70_010), 70_010);
  propagation.reached('b', 'bans', 2n, at(1n, 70_020), 70_020);
  t.like(propagation.take(70_020)[0], { epoch: 2n, nodes: 2, reached: 2, lastAt: 70_020, lastNode: 'b' });
});

test('what is waited for is bounded', (t) => {
  const propagation = pair();
  for (let to = 1n; to <= 600n; to++) propagation.pushed('c', 'bans', batch(to - 1n, to), 1000);
  t.is(propagation.take(1000).length, 600 - 512);
});

const NODES = ['a', 'b', 'c'];
const deed = fc.oneof(
  fc.record({ kind: fc.constant('push' as const), more: fc.integer({ min: 1, max: 3 }) }),
  fc.record({
    kind: fc.constant('ack' as const),
    node: fc.constantFrom(...NODES),
    back: fc.integer({ min: 0, max: 4 }),
  }),
  fc.record({ kind: fc.constantFrom('join' as const, 'leave' as const), node: fc.constantFrom(...NODES) }),
);

test('any history measures what a record of every node and batch would', (t) => {
  fc.assert(
    fc.property(fc.array(deed, { maxLength: 60 }), (deeds) => {
      const propagation = new Propagation();
      const present = new Set<string>();
      const records: { to: bigint; waits: Set<string>; nodes: number; last: [number, string] | null; over: boolean }[] =
        [];
      const expected: unknown[] = [];
      const found: unknown[] = [];
      let head = 0n;
      let now = 1000;
      const check = () => {
        for (const record of records) {
          if (record.over || record.waits.size > 0) continue;
          record.over = true;
          if (record.nodes > 0) expected.push([record.to, record.nodes, ...(record.last ?? [])]);
        }
        for (const { to, nodes, lastAt, lastNode } of propagation.take(now)) found.push([to, nodes, lastAt, lastNode]);
      };
      for (const step of deeds) {
        now += 1;
        if (step.kind === 'push') {
          const from = head;
          head += BigInt(step.more);
          propagation.pushed('c', 'bans', { epoch, from, to: head }, now);
          records.push({
            to: head,
            waits: new Set(present),
            nodes: present.size,
            last: null,
            over: present.size === 0,
          });
        } else if (step.kind === 'ack') {
          const number = head - BigInt(step.back);
          propagation.reached(step.node, 'bans', epoch, at(number, now), now);
          for (const record of records) {
            if (record.over || record.to > number || !record.waits.delete(step.node)) continue;
            record.last = [now, step.node];
          }
        } else if (step.kind === 'join') {
          propagation.joined(step.node, 'c');
          present.add(step.node);
        } else {
          propagation.left(step.node);
          present.delete(step.node);
          for (const record of records) if (record.waits.delete(step.node)) record.nodes--;
        }
        check();
      }
      t.deepEqual(found, expected);
    }),
  );
});
