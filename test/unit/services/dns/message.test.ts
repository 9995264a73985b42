// What servers of names answer to changes: read whatever it is, and believed only with the key.
import { createHmac } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import {
  CLASS_IN,
  CLASS_NONE,
  encodeName,
  encodeUpdate,
  MessageInvalid,
  readName,
  readUpdateAnswer,
} from '../../../../services/dns/adapters/rfc2136/message.ts';
import { encodeData } from '../../../../services/dns/adapters/rfc2136/rdata.ts';
import { signMessage, type TsigKey, verifyAnswer } from '../../../../services/dns/adapters/rfc2136/tsig.ts';

const KEY: TsigKey = { name: 'key.example.org', algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 7) };
const NOW = 1_700_000_000;
const request = signMessage(update('example.org', '_a.example.org', 'v', 60, 7), KEY, NOW);

/** Adds a TXT value for so many seconds; null removes it. */
function update(zone: string, name: string, value: string, ttl: number | null, id: number): Buffer {
  const data = encodeData('TXT', value);
  const change = { name, type: 16, class: ttl === null ? CLASS_NONE : CLASS_IN, ttl: ttl ?? 0, data };
  return encodeUpdate({ id, zone, prerequisites: [], changes: [change] });
}

/** An answer to the request as a server with the key makes it. */
function answer(secret = KEY.secret, rcode = 0): Buffer {
  const message = Buffer.from([0, 7, 0xa8, rcode, 0, 0, 0, 0, 0, 0, 0, 0]);
  const stamp = Buffer.alloc(8);
  stamp.writeUIntBE(NOW, 0, 6);
  stamp.writeUInt16BE(300, 6);
  const [name, algorithm] = [encodeName(KEY.name), encodeName(KEY.algorithm)];
  const mac = createHmac('sha256', secret)
    .update(Buffer.of(0, 32))
    .update(request.mac)
    .update(message)
    .update(Buffer.concat([name, Buffer.of(0, 255, 0, 0, 0, 0), algorithm, stamp, Buffer.alloc(4)]))
    .digest();
  const data = Buffer.concat([algorithm, stamp, Buffer.of(0, 32), mac, Buffer.of(0, 7, 0, 0, 0, 0)]);
  const fixed = Buffer.of(0, 250, 0, 255, 0, 0, 0, 0, 0, data.length);
  message[11] = 1;
  return Buffer.concat([message, name, fixed, data]);
}

function verdict(bytes: Buffer, now = NOW): boolean | number {
  return verifyAnswer(bytes, readUpdateAnswer(bytes), KEY, request, now);
}

test('an answer is believed of who has the key, and for a while', (t) => {
  t.true(verdict(answer()));
  t.false(verdict(answer(Buffer.alloc(32, 8))));
  t.false(verdict(answer(), NOW + 301));
  t.like(readUpdateAnswer(answer(KEY.secret, 5)), { id: 7, rcode: 5, additional: 1 });
});

test('an answer with another byte is not believed', (t) => {
  const good = answer();
  for (let at = 0; at < good.length; at++) {
    const changed = Buffer.from(good);
    changed[at]! ^= 1;
    let believed: boolean | number = false;
    try {
      believed = verdict(changed);
    } catch (error) {
      t.true(error instanceof MessageInvalid);
    }
    // The id is compared with that of the request; what is signed is the original one.
    if (at > 1) t.not(believed, true, `byte ${at}`);
  }
});

test('whatever comes is read or refused', (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 600 }),
    fc
      .tuple(fc.nat(answer().length - 1), fc.uint8Array({ minLength: 1, maxLength: 8 }), fc.nat(answer().length))
      .map(([at, patch, length]) => {
        const changed = answer();
        changed.set(patch.slice(0, changed.length - at), at);
        return changed.subarray(0, length);
      }),
  );
  fc.assert(
    fc.property(bytes, (given) => {
      try {
        verdict(Buffer.from(given));
      } catch (error) {
        if (!(error instanceof MessageInvalid)) throw error;
      }
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

test('names are read as they are written, and pointers lead to what is in front of them alone', (t) => {
  const name = '_acme-challenge.www.example.org';
  const written = encodeName(name);
  t.deepEqual(readName(written, 0), { name, end: written.length });
  const pointed = Buffer.concat([written, Buffer.of(1, 97, 0xc0, 0)]);
  t.deepEqual(readName(pointed, written.length), { name: `a.${name}`, end: pointed.length });
  t.throws(() => readName(Buffer.of(0xc0, 0), 0), { instanceOf: MessageInvalid });
  t.throws(() => readName(Buffer.of(1, 97, 0xc0, 0), 0), { instanceOf: MessageInvalid });
  for (const none of ['', 'a..b', `${'a'.repeat(64)}.org`, `${'a.'.repeat(130)}org`]) {
    t.throws(() => encodeName(none), { instanceOf: RangeError });
  }
});

test('a change names one value, added for a while or removed', (t) => {
  const change = (ttl: number | null) => update('b.org', 'a.b.org', 'xy', ttl, 258);
  const head = '0102' + '2800' + '0001' + '0000' + '0001' + '0000';
  const zone = '0162036f726700' + '0006' + '0001';
  const name = '01610162036f726700';
  t.is(change(60).toString('hex'), `${head}${zone}${name}0010000100${'00003c'}0003027879`);
  t.is(change(null).toString('hex'), `${head}${zone}${name}001000fe00000000${'0003027879'}`);
});
