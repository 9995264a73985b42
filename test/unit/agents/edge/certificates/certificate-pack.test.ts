import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { CertificatePack } from '../../../../../agents/edge/certificates/certificate-pack.ts';
import { fingerprintBytes, fingerprintOf } from '../../../../../agents/edge/certificates/fingerprint.ts';
import {
  type CertificateMaterial,
  CertificateMaterialSchema,
  CertificateStapleSchema,
} from '../../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { temporaryFolder } from '../../helpers/folder.ts';
import { onFullDisk } from '../../helpers/full-disk.ts';
import { memoryLog } from '../../helpers/log.ts';

const SECRET = 'a key that nobody may read';

function name(number: number): string {
  return String(number).padStart(32, '0');
}

/** The pack does not look into what it keeps. */
function material(number: number, bytes = 40): CertificateMaterial {
  return create(CertificateMaterialSchema, {
    certificateId: `crt_${number}`,
    fingerprint: fingerprintBytes(name(number)),
    chain: [new Uint8Array(bytes).fill(number)],
    privateKey: new Uint8Array(Buffer.from(SECRET)),
  });
}

function staple(number: number, text: string) {
  return create(CertificateStapleSchema, {
    fingerprint: fingerprintBytes(name(number)),
    ocspResponse: new Uint8Array(Buffer.from(text)),
    nextUpdate: 7n,
  });
}

function setUp(t: ExecutionContext) {
  const path = join(temporaryFolder(t), 'certificates.pack');
  const { log, lines } = memoryLog();
  const open = (): CertificatePack => CertificatePack.open({ path, log });
  return { path, lines, open };
}

const leafOf = (pack: CertificatePack, number: number): string =>
  Buffer.from(pack.chain(name(number))?.[0] ?? []).toString('hex');

const leaf = (number: number, bytes = 40): string => Buffer.from(material(number, bytes).chain[0]!).toString('hex');

const textOf = (pack: CertificatePack, number: number): string | undefined => {
  const held = pack.staple(name(number));
  return held && Buffer.from(held.ocspResponse).toString();
};

test('what was put is there after a restart, in a file that only its owner can read', async (t) => {
  const { path, open, lines } = setUp(t);
  const pack = open();
  t.is(pack.certificates, 0);
  await pack.put([material(1), material(2)]);
  await pack.putStaples([staple(1, 'old'), staple(1, 'new')]);
  t.is(statSync(path).mode & 0o777, 0o600);
  await pack.close();
  const again = open();
  t.is(again.certificates, 2);
  t.true(again.has(name(1)) && again.has(name(2)) && !again.has(name(3)));
  t.is(leafOf(again, 2), leaf(2));
  t.is(textOf(again, 1), 'new');
  t.is(textOf(again, 2), undefined);
  await again.close();
  t.false(lines.some((line) => line.includes(SECRET)));
});

test('a file that is cut anywhere opens with all that is whole, and goes on from there', async (t) => {
  const { path, open } = setUp(t);
  const pack = open();
  const ends: number[] = [0];
  for (let number = 1; number <= 4; number++) {
    await pack.put([material(number)]);
    ends.push(pack.bytes);
  }
  await pack.close();
  const whole = readFileSync(path);
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length), async (length) => {
      writeFileSync(path, whole.subarray(0, length));
      const cut = open();
      const complete = ends.filter((end) => end <= length).length - 1;
      t.is(cut.certificates, complete);
      t.is(cut.bytes, ends[complete]!);
      await cut.put([material(9)]);
      await cut.close();
      const again = open();
      t.is(again.certificates, complete + 1);
      t.is(leafOf(again, 9), leaf(9));
      await again.close();
    }),
  );
});

test('damage costs what it hits, and no more', async (t) => {
  const { path, open, lines } = setUp(t);
  const pack = open();
  const ends: number[] = [0];
  for (let number = 1; number <= 6; number++) {
    await pack.put([material(number, 300)]);
    ends.push(pack.bytes);
  }
  await pack.close();
  const whole = readFileSync(path);
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
      const damaged = Buffer.from(whole);
      damaged[at]! ^= flip;
      writeFileSync(path, damaged);
      const hit = ends.filter((end) => end <= at).length;
      const held = open();
      for (let number = 1; number <= 6; number++) t.is(held.has(name(number)), number !== hit, `record ${number}`);
      await held.put([material(7)]);
      await held.close();
      const again = open();
      for (let number = 1; number <= 7; number++) {
        if (number === hit) continue;
        t.is(leafOf(again, number), leaf(number, number === 7 ? 40 : 300));
      }
      await again.close();
    }),
  );
  t.true(lines.length > 0);
  t.false(lines.some((line) => line.includes(SECRET)));
});

test('whatever is put, left out and read again, the pack has what was put last and is still kept', async (t) => {
  const { path, open } = setUp(t);
  const number = fc.integer({ min: 1, max: 6 });
  const step = fc.oneof(
    fc.record({ put: fc.array(number, { maxLength: 4 }) }),
    fc.record({ staple: number, text: fc.string({ maxLength: 8 }) }),
    fc.record({ keep: fc.array(number), meanwhile: fc.array(number, { maxLength: 2 }) }),
    fc.constant('restart' as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      let pack = open();
      const materials = new Set<number>();
      const staples = new Map<number, string>();
      const check = (): void => {
        for (let each = 1; each <= 6; each++) {
          t.is(pack.has(name(each)), materials.has(each));
          t.is(textOf(pack, each), staples.get(each));
          if (materials.has(each)) t.is(leafOf(pack, each), leaf(each));
        }
      };
      for (const each of steps) {
        if (each === 'restart') {
          await pack.close();
          pack = open();
        } else if ('put' in each) {
          await pack.put(each.put.map((one) => material(one)));
          for (const one of each.put) materials.add(one);
        } else if ('staple' in each) {
          await pack.putStaples([staple(each.staple, each.text)]);
          staples.set(each.staple, each.text);
        } else {
          const kept = new Set(each.keep.map(name));
          const hadFile = pack.bytes > 0;
          const compacted = pack.compact((fingerprint) => kept.has(fingerprint));
          const added = pack.put(each.meanwhile.map((one) => material(one)));
          await Promise.all([compacted, added]);
          if (hadFile) {
            for (const one of [...materials]) if (!each.keep.includes(one)) materials.delete(one);
            for (const one of [...staples.keys()]) if (!each.keep.includes(one)) staples.delete(one);
          }
          for (const one of each.meanwhile) materials.add(one);
        }
        check();
      }
      await pack.close();
      pack = open();
      check();
      await pack.close();
      // There is none while nothing was put.
      rmSync(path, { force: true });
    }),
    { numRuns: 60 },
  );
});

test('the file is written anew when more than half of it is of no use', async (t) => {
  const { open } = setUp(t);
  const pack = open();
  const large = 400 * 1024;
  for (let number = 1; number <= 4; number++) await pack.put([material(number, large)]);
  const isKept = (count: number) => (fingerprint: string) => Number(fingerprint) <= count;
  t.false(await pack.compactIfWorthwhile(isKept(3)));
  const before = pack.bytes;
  t.true(await pack.compactIfWorthwhile(isKept(1)));
  t.true(pack.bytes < before / 2);
  t.deepEqual(
    [1, 2, 3, 4].map((number) => pack.has(name(number))),
    [true, false, false, false],
  );
  await pack.put([material(5)]);
  await pack.close();
  const again = open();
  t.is(leafOf(again, 1), leaf(1, large));
  t.is(leafOf(again, 5), leaf(5));
  await again.close();
});

test('what is too large for Caddy to read is refused', async (t) => {
  const { open } = setUp(t);
  const pack = open();
  await t.throwsAsync(pack.put([material(1), material(2, 1024 * 1024)]), { message: /too large/ });
  t.is(pack.certificates, 0);
  t.is(fingerprintOf(material(1).fingerprint), name(1));
  await pack.close();
});

test('on a full disk nothing is half there, and what serves stays', (t) => {
  const facts = onFullDisk(
    t,
    `
    const [root, folder] = process.argv.slice(1);
    const { CertificatePack } = await import(root + '/agents/edge/certificates/certificate-pack.ts');
    const { create } = await import('@bufbuild/protobuf');
    const { CertificateMaterialSchema } = await import(root + '/proto/gen/svc/node/v1/certificates_pb.js');
    const log = { debug() {}, info() {}, warn() {}, error() {}, child() { return log; } };
    const path = folder + '/certificates.pack';
    const material = (number, bytes) => create(CertificateMaterialSchema, {
      certificateId: 'c' + number,
      fingerprint: Buffer.alloc(32, number),
      chain: [new Uint8Array(bytes)],
    });
    const name = (number) => Buffer.alloc(32, number).toString('latin1');
    let pack = CertificatePack.open({ path, log });
    await pack.put([material(1, 300_000)]);
    const refused = await pack.put([material(2, 500_000), material(3, 500_000)]).then(() => false, (error) => error.code === 'ENOSPC');
    const kept = await pack.compact(() => true).then(() => true, () => pack.has(name(1)));
    const none = !pack.has(name(2)) && !pack.has(name(3));
    await pack.put([material(4, 1_000)]);
    await pack.close();
    pack = CertificatePack.open({ path, log });
    const after = pack.has(name(1)) && pack.has(name(4)) && pack.certificates === 2;
    console.log(JSON.stringify([refused, kept, none, after]));
    `,
  );
  t.deepEqual(facts, [true, true, true, true]);
});
