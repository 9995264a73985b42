// The pack of certificates whose process is killed while it appends, replaces and writes the file anew.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { CertificatePack } from '../../../../../agents/edge/certificates/certificate-pack.ts';
import { fingerprintBytes } from '../../../../../agents/edge/certificates/fingerprint.ts';
import { CertificateMaterialSchema } from '../../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { temporaryFolder } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';

const ROOT = join(import.meta.dirname, '../../../../..');
/** Even ones are kept when the file is written anew. */
const KEPT = 2;

const name = (number: number) => String(number).padStart(32, '0');

/** Puts one after the other for ever and prints each that is on disk; between them the file is written anew. */
const WRITER = `
  const [root, path, bytes, anew] = process.argv.slice(1);
  const { CertificatePack } = await import(root + '/agents/edge/certificates/certificate-pack.ts');
  const { create } = await import('@bufbuild/protobuf');
  const { CertificateMaterialSchema } = await import(root + '/proto/gen/svc/node/v1/certificates_pb.js');
  const log = { debug() {}, info() {}, warn() {}, error() {}, child() { return log; } };
  const pack = CertificatePack.open({ path, log });
  const name = (number) => String(number).padStart(32, '0');
  for (let number = 1; ; number++) {
    const rewriting = anew === 'yes' && number % 3 === 0 ? pack.compact((fingerprint) => Number(fingerprint) % ${KEPT} === 0) : undefined;
    await pack.put([create(CertificateMaterialSchema, {
      certificateId: 'crt_' + number,
      fingerprint: Buffer.from(name(number), 'latin1'),
      chain: [new Uint8Array(Number(bytes)).fill(number % 251)],
      privateKey: new Uint8Array(32).fill(number % 251),
    })]);
    await rewriting;
    process.stdout.write(number + '\\n');
  }
`;

/** Kills the writer when it has said so many; answers what it said. */
async function killedAfter(path: string, bytes: number, anew: boolean, count: number): Promise<number[]> {
  const words = ['--input-type=module', '-e', WRITER, ROOT, path, String(bytes), anew ? 'yes' : 'no'];
  const child = spawn(process.execPath, words, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const said: number[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(Number(line));
    if (said.length === count) child.kill('SIGKILL');
  }
  await ended;
  return said;
}

for (const [what, bytes, anew] of [
  ['small ones are appended', 40, false],
  ['large ones are appended', 700_000, false],
  ['the file is written anew', 40_000, true],
] as const) {
  test(`killed while ${what}: what was confirmed is there, each as it was put, and it goes on`, async (t) => {
    for (const count of [1, 4, 30]) {
      const folder = temporaryFolder(t);
      const path = join(folder, 'certificates.pack');
      const said = await killedAfter(path, bytes, anew, count);
      t.true(said.length >= count);
      const pack = CertificatePack.open({ path, log: memoryLog().log });
      const last = said.at(-1)!;
      for (let number = 1; number <= last + 1; number++) {
        const chain = pack.chain(name(number));
        if (chain) {
          t.is(chain[0]!.length, bytes);
          t.true(
            chain[0]!.every((byte) => byte === number % 251),
            `${number} is mixed with another`,
          );
        } else t.true(number > last || (anew && number % KEPT !== 0), `${number} was confirmed`);
      }
      t.deepEqual(readdirSync(folder), ['certificates.pack'], 'nothing half written stays');
      const more = create(CertificateMaterialSchema, {
        certificateId: 'crt_more',
        fingerprint: fingerprintBytes(name(999)),
        chain: [new Uint8Array(9)],
      });
      await pack.put([more]);
      await pack.close();
      const again = CertificatePack.open({ path, log: memoryLog().log });
      t.true(again.has(name(999)));
      await again.close();
    }
  });
}
