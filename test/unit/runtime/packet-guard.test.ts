import { randomBytes } from 'node:crypto';
import test from 'ava';
import { PacketGuard } from '../../../runtime/packet-guard.ts';
import { PacketSeal } from '../../../runtime/packet-seal.ts';

const [KEY, NEXT, OTHER] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const TOPIC = 'MOL-svc.REQ.node-1';
const BODY = Buffer.from('{"action":"sites.delete"}');
const NOW = 1_800_000_000_000;
const MINUTE = 60_000;

const guard = (key = KEY, previous: Buffer | null = null, purpose = 'broker') =>
  new PacketGuard(new PacketSeal(purpose, key, previous));

test('a packet of a process with the same key is opened, once', (t) => {
  const [from, to] = [guard(), guard()];
  const packet = from.wrap(TOPIC, BODY, NOW);
  t.deepEqual(to.unwrap(TOPIC, packet, NOW), BODY);
  t.is(to.unwrap(TOPIC, packet, NOW), null);
  t.deepEqual(to.unwrap(TOPIC, from.wrap(TOPIC, Buffer.alloc(0), NOW), NOW), Buffer.alloc(0));
});

test('a packet that was overtaken is not taken any more', (t) => {
  const [from, to] = [guard(), guard()];
  const [first, second] = [from.wrap(TOPIC, BODY, NOW), from.wrap(TOPIC, BODY, NOW)];
  t.truthy(to.unwrap(TOPIC, second, NOW));
  t.is(to.unwrap(TOPIC, first, NOW), null);
});

for (const [what, packet] of Object.entries({
  'of another key': () => guard(OTHER).wrap(TOPIC, BODY, NOW),
  'for another use of the key': () => guard(KEY, null, 'fanout').wrap(TOPIC, BODY, NOW),
  'for another topic': () => guard().wrap('MOL-svc.REQ.node-2', BODY, NOW),
  'of five minutes ago': () => guard().wrap(TOPIC, BODY, NOW - 5 * MINUTE - 1),
  'of five minutes ahead': () => guard().wrap(TOPIC, BODY, NOW + 5 * MINUTE + 1),
  'without a seal': () => BODY,
  'without anything': () => Buffer.alloc(0),
})) {
  test(`a packet ${what} is refused`, (t) => {
    t.is(guard().unwrap(TOPIC, packet(), NOW), null);
  });
}

test('a packet with any byte changed, or cut anywhere, is refused', (t) => {
  const packet = guard().wrap(TOPIC, BODY, NOW);
  for (let index = 0; index < packet.length; index++) {
    const changed = Buffer.from(packet);
    changed[index]! ^= 1;
    t.is(guard().unwrap(TOPIC, changed, NOW), null, `byte ${index}`);
    t.is(guard().unwrap(TOPIC, packet.subarray(0, index), NOW), null, `cut at ${index}`);
  }
});

test('while the master key is changed, each of the two is understood by whoever knows either', (t) => {
  const between = () => guard(NEXT, KEY);
  for (const [from, to] of [
    [guard(KEY), between()],
    [between(), guard(KEY)],
    [guard(NEXT), between()],
    [between(), guard(NEXT)],
  ] as const) {
    t.deepEqual(to.unwrap(TOPIC, from.wrap(TOPIC, BODY, NOW), NOW), BODY);
  }
  t.is(guard(NEXT).unwrap(TOPIC, guard(KEY).wrap(TOPIC, BODY, NOW), NOW), null);
});

test('senders that have gone are forgotten, and strangers never remembered', (t) => {
  const to = guard();
  for (let index = 0; index < 20; index++) t.truthy(to.unwrap(TOPIC, guard().wrap(TOPIC, BODY, NOW), NOW));
  for (let index = 0; index < 20; index++) t.is(to.unwrap(TOPIC, guard(OTHER).wrap(TOPIC, BODY, NOW), NOW), null);
  t.is(to.remembered, 20);
  const later = NOW + 11 * MINUTE;
  t.truthy(to.unwrap(TOPIC, guard().wrap(TOPIC, BODY, later), later));
  t.is(to.remembered, 1);
});
