import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { CertificatePack } from '../../../../../agents/edge/certificates/certificate-pack.ts';
import { CertificateUses } from '../../../../../agents/edge/certificates/certificate-uses.ts';
import { fingerprintOf } from '../../../../../agents/edge/certificates/fingerprint.ts';
import { ASKING, askResponder, ResponderDown } from '../../../../../agents/edge/certificates/ocsp/ask-responder.ts';
import {
  checkAnswer,
  encodeRequest,
  responderOf,
  subjectOf,
} from '../../../../../agents/edge/certificates/ocsp/ocsp-message.ts';
import { Stapler, type StaplerOptions } from '../../../../../agents/edge/certificates/ocsp/stapler.ts';
import { CertificateRefSchema } from '../../../../../proto/gen/svc/config/v1/https_pb.js';
import {
  type CertificateMaterial,
  CertificateMaterialSchema,
} from '../../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { httpsEntry } from '../../helpers/certificates.ts';
import { temporaryFolder, until } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';
import { ocspAuthority } from '../../helpers/ocsp-authority.ts';
import { slowResponder, unreachableResponder } from '../../helpers/ocsp-responders.ts';

const DAY_MS = 86_400_000;
const asking = { ...ASKING, resolve: async () => '127.0.0.1' };
/** Longer than a test takes. */
const FOREVER_MS = 600_000;

function subject(material: CertificateMaterial) {
  return subjectOf(material.chain[0]!, material.chain[1]!);
}

/** The same certificate as several, which nobody compares. */
function copies(material: CertificateMaterial, count: number): CertificateMaterial[] {
  return Array.from({ length: count }, (_, index) => {
    const fingerprint = new Uint8Array(createHash('sha256').update(`${index}`).digest());
    return create(CertificateMaterialSchema, { ...material, certificateId: `${index}`, fingerprint });
  });
}

async function stapling(
  t: ExecutionContext,
  materials: CertificateMaterial[],
  limits: Partial<StaplerOptions> = { asking },
) {
  const { log, lines } = memoryLog();
  const path = join(temporaryFolder(t), 'certificates.pack');
  const pack = CertificatePack.open({ path, log });
  await pack.put(materials);
  const uses = new CertificateUses(() => undefined);
  const use = (material: CertificateMaterial, isStapled: boolean): void => {
    const ref = create(CertificateRefSchema, {
      certificateId: material.certificateId,
      fingerprint: material.fingerprint,
    });
    const { kind, id, body } = httpsEntry(material.certificateId, [ref], isStapled);
    uses.put(kind, id, body);
  };
  let told = 0;
  const start = (): Stapler => {
    const stapler = new Stapler({ pack, uses, log, grew: () => told++, ...limits });
    t.teardown(() => stapler.stop());
    stapler.soon();
    return stapler;
  };
  const held = (material: CertificateMaterial) => pack.staple(fingerprintOf(material.fingerprint));
  t.teardown(() => pack.close());
  return { lines, use, start, held, told: () => told };
}

test('answers of the issuer and of who may answer for it are taken, until they end', async (t) => {
  const { answer, leaf, signWith } = await ocspAuthority(t);
  const good = leaf('good.example', '10', 'V');
  t.regex(responderOf(good.chain[0]!)!, /^http:\/\/ocsp\.example:\d+\/$/);
  for (const signer of ['ca', 'delegate'] as const) {
    signWith(signer);
    const response = answer(encodeRequest(subject(good)));
    const until = checkAnswer(response, subject(good), Date.now());
    t.true(until > Date.now() + DAY_MS);
    t.throws(() => checkAnswer(response, subject(good), until + 1), { message: /has expired/ });
    t.throws(() => checkAnswer(response, subject(good), Date.now() - DAY_MS), {
      message: /not valid yet|signed neither/,
    });
    const forged = Buffer.from(response);
    forged[forged.indexOf('Z') - 1]! ^= 1;
    t.throws(() => checkAnswer(forged, subject(good), Date.now()));
  }
});

test('what somebody else signed, of another certificate, of one that is revoked or unknown, is not shown to clients', async (t) => {
  const { answer, leaf, signWith } = await ocspAuthority(t);
  const good = leaf('good.example', '10', 'V');
  const revoked = leaf('revoked.example', '11', 'R');
  signWith('stranger');
  const forged = answer(encodeRequest(subject(good)));
  t.throws(() => checkAnswer(forged, subject(good), Date.now()), { message: /signed neither by the issuer/ });
  signWith('ca');
  const response = answer(encodeRequest(subject(good)));
  t.throws(() => checkAnswer(response, subject(revoked), Date.now()), { message: /for another certificate/ });
  const bad = answer(encodeRequest(subject(revoked)));
  t.throws(() => checkAnswer(bad, subject(revoked), Date.now()), { message: /is revoked/ });
  t.throws(() => checkAnswer(new Uint8Array([0x30, 3, 0x0a, 1, 6]), subject(good), Date.now()), {
    message: /status 6/,
  });
  for (const nonsense of ['', 'nonsense', '<html>'])
    t.throws(() => checkAnswer(Buffer.from(nonsense), subject(good), Date.now()));
});

test('responders are asked where sites want it; what they say is kept, and not asked for again while it holds', async (t) => {
  const { answering, leaf } = await ocspAuthority(t);
  const stapled = leaf('stapled.example', '10', 'V');
  const plain = leaf('plain.example', '11', 'V');
  const { use, start, held, told } = await stapling(t, [stapled, plain]);
  use(stapled, true);
  use(plain, false);
  const first = start();
  await until(t, 'kept', () => held(stapled) !== undefined);
  t.true(Number(held(stapled)!.nextUpdate) * 1000 > Date.now() + DAY_MS);
  t.is(held(plain), undefined);
  await first.stop();
  t.is(told(), 1);
  t.is(answering.asked, 1);
  start();
  use(plain, true);
  await until(t, 'the other', () => held(plain) !== undefined);
  t.is(answering.asked, 2);
});

test('an answer that cannot be used is said, and nothing is kept', async (t) => {
  const { answering, leaf } = await ocspAuthority(t);
  const revoked = leaf('revoked.example', '10', 'R');
  const { use, start, held, lines } = await stapling(t, [revoked]);
  use(revoked, true);
  start();
  await until(t, 'said', () => lines.some((line) => line.includes('is revoked')));
  t.is(held(revoked), undefined);
  t.is(answering.asked, 1);
});

test('a responder that hangs holds up no answer of another, and is not asked all that there is', async (t) => {
  const { leaf } = await ocspAuthority(t);
  const slow = await slowResponder(t, 'silent');
  const hanging = copies(leaf('hanging.example', '11', 'V', slow.url), 12);
  const good = leaf('good.example', '10', 'V');
  const limits = { asking: { ...asking, totalMs: FOREVER_MS }, passMs: 2 * FOREVER_MS };
  const { use, start, held, lines } = await stapling(t, [...hanging, good], limits);
  for (const material of [...hanging, good]) use(material, true);
  start();
  await until(t, 'the answer of the other', () => held(good) !== undefined);
  await until(t, 'questions', () => slow.asked.times === 4);
  slow.close();
  await until(t, 'taken to be down', () => lines.some((line) => line.includes('OCSP responder is down')));
  const tried = lines.filter((line) => line.includes('no fresh OCSP response')).length;
  t.true(tried < hanging.length, `${tried} questions to a responder that is down`);
});

test('what a pass does not come to is left to the next one', async (t) => {
  const { answering, leaf } = await ocspAuthority(t);
  const materials = copies(leaf('good.example', '10', 'V'), 6);
  // A pass of a moment: no more than what begins in it.
  const limits = { asking, passMs: asking.totalMs + 20 };
  const { use, start, held } = await stapling(t, materials, limits);
  for (const material of materials) use(material, true);
  start();
  await until(t, 'all', () => materials.every((material) => held(material) !== undefined));
  t.is(answering.asked, materials.length);
});

test('a responder that never answers, one that drips and one that cannot be reached are given up', async (t) => {
  const question = Buffer.from('question');
  const soon = { ...asking, totalMs: 300 };
  for (const how of ['silent', 'dripping'] as const) {
    const { url } = await slowResponder(t, how);
    await t.throwsAsync(askResponder(url, question, soon), { instanceOf: ResponderDown, message: /is too slow/ }, how);
  }
  const url = await unreachableResponder(t);
  const unreachable = askResponder(url, question, { ...asking, connectMs: 300, totalMs: FOREVER_MS });
  await t.throwsAsync(unreachable, { instanceOf: ResponderDown, message: /cannot be reached/ });
});

test('responders are asked at public addresses only, are not followed elsewhere, and are bounded', async (t) => {
  const { answering, leaf } = await ocspAuthority(t);
  const good = leaf('good.example', '10', 'V');
  const url = responderOf(good.chain[0]!)!;
  const question = encodeRequest(subject(good));
  await t.throwsAsync(askResponder('http://127.0.0.1:1/', question), { message: /^address .* is in / });
  await t.throwsAsync(askResponder('http://[::1]:1/', question), { message: /^address .* is in / });
  await t.throwsAsync(askResponder('https://ocsp.example/', question, asking), { message: /only plain-HTTP/ });
  answering.instead = () => ({ status: 302, headers: { location: url }, body: '' });
  await t.throwsAsync(askResponder(url, question, asking), { message: /status 302/ });
  answering.instead = () => ({ status: 200, body: Buffer.alloc(1024 * 1024 + 1) });
  await t.throwsAsync(askResponder(url, question, asking), { message: /too large/ });
});

test('a responder is asked at a public address only', async (t) => {
  t.is(await ASKING.resolve('[2606:4700::1111]', 1000), '2606:4700::1111');
  for (const host of ['localhost', '127.0.0.1', '[::ffff:10.0.0.1]', '[64:ff9b::7f00:1]'])
    await t.throwsAsync(ASKING.resolve(host, 60_000), { message: /^address .* is in / }, host);
});
