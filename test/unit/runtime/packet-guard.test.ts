import { randomBytes } from 'node:crypto';
import test from 'ava';
import { PacketCipher } from '../../../runtime/packet-cipher.ts';
import { PacketGuard } from '../../../runtime/packet-guard.ts';
import { PacketSeal } from '../../../runtime/packet-seal.ts';

const [KEY, NEXT, OTHER] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const TOPIC = 'MOL-svc.REQ.node-1';
const BODY = Buffer.from('{"action":"sites.delete"}');
const NOW = 1_800_000_000_000;
const MINUTE = 60_000;

const guard = (key = KEY, previous: Buffer | null = null, purpose = 'broker') =>
  new PacketGuard(new PacketSeal(purpose, key, previous), new PacketCipher(purpose, key, previous));

for (const form of ['encrypted', 'signed'] as const) {
  const wrap = (from: PacketGuard, topic = TOPIC, at = NOW) => from.wrap(topic, BODY, form, at);

  test(`${form}: a packet of a process with the same key is opened, once`, (t) => {
    const [from, to] = [guard(), guard()];
    const packet = wrap(from);
    t.deepEqual(to.unwrap(TOPIC, packet, NOW), BODY);
    t.is(to.unwrap(TOPIC, packet, NOW), null);
    t.deepEqual(to.unwrap(TOPIC, from.wrap(TOPIC, Buffer.alloc(0), form, NOW), NOW), Buffer.alloc(0));
  });

  test(`${form}: a packet that was overtaken is not taken any more`, (t) => {
    const [from, to] = [guard(), guard()];
    const [first, second] = [wrap(from), wrap(from)];
    t.truthy(to.unwrap(TOPIC, second, NOW));
    t.is(to.unwrap(TOPIC, first, NOW), null);
  });

  for (const [what, packet] of Object.entries({
    'of another key': () => wrap(guard(OTHER)),
    'for another use of the key': () => wrap(guard(KEY, null, 'fanout')),
    'for another topic': () => wrap(guard(), 'MOL-svc.REQ.node-2'),
    'of five minutes ago': () => wrap(guard(), TOPIC, NOW - 5 * MINUTE - 1),
    'of five minutes ahead': () => wrap(guard(), TOPIC, NOW + 5 * MINUTE + 1),
  })) {
    test(`${form}: a packet ${what} is refused`, (t) => {
      t.is(guard().unwrap(TOPIC, packet(), NOW), null);
    });
  }

  // The seal for a reader with the other key is not what this reader goes by.
  const keys = form === 'encrypted' ? { 'one key': null, 'two keys': OTHER } : { 'one key': null };
  for (const [which, previous] of Object.entries(keys)) {
    test(`${form}, ${which}: a packet with any byte changed, or cut anywhere, is refused`, (t) => {
      const packet = wrap(guard(KEY, previous));
      for (const reader of [guard(KEY), ...(previous ? [guard(previous)] : [])]) {
        for (let index = 0; index < packet.length; index++) {
          const changed = Buffer.from(packet);
          changed[index]! ^= 1;
          t.is(reader.unwrap(TOPIC, changed, NOW), null, `byte ${index}`);
          t.is(reader.unwrap(TOPIC, packet.subarray(0, index), NOW), null, `cut at ${index}`);
        }
        t.deepEqual(reader.unwrap(TOPIC, packet, NOW), BODY);
      }
    });
  }

  test(`${form}: while the master key is changed, each of the two is understood by whoever knows either`, (t) => {
    const between = () => guard(NEXT, KEY);
    for (const [from, to] of [
      [guard(KEY), between()],
      [between(), guard(KEY)],
      [guard(NEXT), between()],
      [between(), guard(NEXT)],
    ] as const) {
      for (let packet = 0; packet < 2; packet++) t.deepEqual(to.unwrap(TOPIC, wrap(from), NOW), BODY);
    }
    t.is(guard(NEXT).unwrap(TOPIC, wrap(guard(KEY)), NOW), null);
  });

  test(`${form}: senders that have gone are forgotten, and strangers never remembered`, (t) => {
    const to = guard();
    for (let index = 0; index < 20; index++) t.truthy(to.unwrap(TOPIC, wrap(guard()), NOW));
    for (let index = 0; index < 20; index++) t.is(to.unwrap(TOPIC, wrap(guard(OTHER)), NOW), null);
    t.is(to.remembered, 20);
    const later = NOW + 11 * MINUTE;
    t.truthy(to.unwrap(TOPIC, wrap(guard(), TOPIC, later), later));
    t.is(to.remembered, 1);
  });
}

for (const [what, packet] of Object.entries({ 'without a seal': BODY, 'without anything': Buffer.alloc(0) })) {
  test(`a packet ${what} is refused`, (t) => {
    t.is(guard().unwrap(TOPIC, packet, NOW), null);
  });
}

test('both forms of one sender count together', (t) => {
  const [from, to] = [guard(), guard()];
  const [first, second, third] = [
    from.wrap(TOPIC, BODY, 'signed', NOW),
    from.wrap(TOPIC, BODY, 'encrypted', NOW),
    from.wrap(TOPIC, BODY, 'signed', NOW),
  ];
  t.truthy(to.unwrap(TOPIC, first, NOW));
  t.truthy(to.unwrap(TOPIC, third, NOW));
  t.is(to.unwrap(TOPIC, second, NOW), null);
});

test('an encrypted packet shows nothing of its body, and no two packets of one body are alike', (t) => {
  const from = guard(NEXT, KEY);
  const packets = [from.wrap(TOPIC, BODY, 'encrypted', NOW), from.wrap(TOPIC, BODY, 'encrypted', NOW)];
  for (const packet of packets) t.false(packet.includes('sites.delete'));
  const [one, other] = packets.map((packet) => packet.subarray(-BODY.length - 16).toString('hex'));
  t.not(one, other);
});
