// Certificates from the console to the data plane, by a whole agent.
import { statSync, unlinkSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Code, ConnectError } from '@connectrpc/connect';
import test from 'ava';
import { CertificatePack } from '../../../../../agents/edge/certificates/certificate-pack.ts';
import type { CertificateMaterial } from '../../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { httpsEntry, testCertificates } from '../../helpers/certificates.ts';
import type { TestConsole } from '../../helpers/console.ts';
import { until } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';
import { agentParts } from '../../helpers/running-agent.ts';

const certificates = await testCertificates();
const { material, ref } = certificates;
const site = (id: string) => ({ kind: 'site', id, body: new Uint8Array(Buffer.from(id)) });

function hex(number: number): string {
  return Buffer.from(material(number).fingerprint).toString('hex');
}

function offer(testConsole: TestConsole, ...materials: CertificateMaterial[]): void {
  for (const each of materials) testConsole.certificates.set(Buffer.from(each.fingerprint).toString('hex'), each);
}

/** What was reported of a revision, and failed with it. */
function reports(testConsole: TestConsole, revision: bigint): string[][] {
  return testConsole.applied
    .filter(({ config }) => config?.revision === revision)
    .map(({ failed }) => failed.map(({ id, reason }) => `${id}: ${reason}`));
}

test('a revision is reported when the certificates of its entries are there; another name of them costs nothing', async (t) => {
  const { testConsole, caddy, startAgent, paths, lines } = await agentParts(t);
  testConsole.publish([site('before')]);
  await startAgent();
  await until(t, 'the first', () => reports(testConsole, 1n).length > 0);
  offer(testConsole, material(1));
  testConsole.publish([site('one'), httpsEntry('one', [ref(1)])]);
  await until(t, 'the second', () => reports(testConsole, 2n).length > 0);
  t.true(caddy.materials.has(hex(1)));
  t.deepEqual(reports(testConsole, 2n).flat(), []);
  const calls = caddy.calls.filter((call) => ['applyConfig', 'readCertificates'].includes(call));
  t.deepEqual(calls.slice(-2), ['readCertificates', 'applyConfig'], 'it could read them before it got the entry');
  testConsole.publish([httpsEntry('two', [ref(1)], true)]);
  await until(t, 'the third', () => reports(testConsole, 3n).length > 0);
  t.is(testConsole.certificateRequests.length, 1);
  t.is(statSync(paths.certificates).mode & 0o777, 0o600);
  const key = Buffer.from(material(1).privateKey);
  for (const encoding of ['base64', 'hex', 'latin1'] as const)
    t.false(lines.some((line) => line.includes(key.toString(encoding))));
});

test('what comes late fails by name until it is there, and keeps nothing else', async (t) => {
  const { testConsole, caddy, startAgent } = await agentParts(t);
  testConsole.publish([site('before')]);
  await startAgent();
  await until(t, 'the first', () => reports(testConsole, 1n).length > 0);
  const { promise, resolve } = Promise.withResolvers<void>();
  testConsole.certificatesHeld = promise;
  offer(testConsole, material(1));
  testConsole.publish([site('one'), httpsEntry('one', [ref(1)])]);
  await until(t, 'reported', () => reports(testConsole, 2n).length > 0);
  t.true(caddy.entries.has('site/one'));
  t.deepEqual(reports(testConsole, 2n)[0], ['one: there is no material of certificate 1']);
  resolve();
  await until(t, 'reported again', () => reports(testConsole, 2n).at(-1)?.length === 0);
  t.true(caddy.materials.has(hex(1)));
});

test('certificates that are not to be had or do not check are named, and everything else applies', async (t) => {
  const { testConsole, caddy, startAgent, lines } = await agentParts(t);
  const other = (await testCertificates()).material(0);
  const broken = [
    material(1),
    { ...material(2), privateKey: other.privateKey },
    { ...material(3), chain: other.chain },
    { ...material(4), privateKey: new Uint8Array(Buffer.from('not a key at all')) },
    { ...material(5), chain: [...material(5).chain, new Uint8Array(9)] },
  ];
  offer(testConsole, ...broken);
  testConsole.publish([1, 2, 3, 4, 5, 6].map((number) => httpsEntry(`s${number}`, [ref(number)])));
  await startAgent();
  await until(t, 'reported', () => reports(testConsole, 1n).at(-1)?.length === 5);
  t.deepEqual([...caddy.materials], [hex(1)]);
  const message = () => testConsole.heartbeats.at(-1)?.message ?? '';
  const reasons = [
    'certificate 2: its key does not match the certificate',
    'certificate 3: it is not the requested certificate',
    'certificate 4: its key cannot be read',
    'certificate 5: its chain cannot be read',
    'certificate 6: the console does not have it',
  ];
  await until(t, 'said', () => reasons.every((reason) => message().includes(reason)));
  t.false(lines.some((line) => line.includes('not a key at all')));
  offer(testConsole, ...[2, 3, 4, 5, 6].map(material));
  testConsole.cut();
  await until(t, 'mended', () => reports(testConsole, 1n).at(-1)?.length === 0);
  await until(t, 'nothing is said', () => !message().includes('certificate'));
});

test('with the console gone a new agent and a new data plane serve what is on disk', async (t) => {
  const { testConsole, caddy, startAgent } = await agentParts(t);
  offer(testConsole, material(1), material(2));
  testConsole.publish([httpsEntry('one', [ref(1), ref(2)])]);
  const first = await startAgent();
  await until(t, 'served', () => reports(testConsole, 1n).at(-1)?.length === 0);
  await first.stop();
  await testConsole.stop();
  await caddy.restart('second');
  await startAgent();
  t.deepEqual(caddy.failed, []);
  t.is(caddy.materials.size, 2);
});

test('what an agent wrote that died before it told the data plane is read when the next one comes', async (t) => {
  const { testConsole, caddy, startAgent, paths } = await agentParts(t);
  testConsole.publish([site('one')]);
  const first = await startAgent();
  await until(t, 'served', () => reports(testConsole, 1n).length > 0);
  await first.stop();
  const pack = CertificatePack.open({ path: paths.certificates, log: memoryLog().log });
  await pack.put([material(1)]);
  await pack.close();
  testConsole.publish([httpsEntry('one', [ref(1)])]);
  await startAgent();
  await until(t, 'served with it', () => reports(testConsole, 2n).at(-1)?.length === 0);
  t.true(caddy.materials.has(hex(1)));
});

test('a pack that was lost is pulled again', async (t) => {
  const { testConsole, caddy, startAgent, paths } = await agentParts(t);
  offer(testConsole, material(1));
  testConsole.publish([httpsEntry('one', [ref(1)])]);
  const first = await startAgent();
  await until(t, 'served', () => reports(testConsole, 1n).at(-1)?.length === 0);
  await first.stop();
  unlinkSync(paths.certificates);
  await caddy.restart('second');
  t.is(caddy.failed.length, 1);
  await startAgent();
  await until(t, 'served again', () => caddy.failed.length === 0);
});

test('a data plane without HTTPS is brought no certificates; one that can serve it is', async (t) => {
  const { testConsole, caddy, startAgent } = await agentParts(t);
  caddy.capabilities = ['bans-v1'];
  offer(testConsole, material(1));
  testConsole.publish([site('one'), httpsEntry('one', [ref(1)])]);
  await startAgent();
  await until(t, 'applied', () => reports(testConsole, 1n).length > 0);
  t.is(testConsole.certificateRequests.length, 0);
  caddy.capabilities = ['https-v1'];
  await until(t, 'served', () => caddy.materials.has(hex(1)));
});

test('a console that refuses is asked again', async (t) => {
  const { testConsole, caddy, startAgent } = await agentParts(t);
  offer(testConsole, material(1));
  let refusals = 2;
  testConsole.onCall = (method) => {
    if (method === 'getCertificates' && refusals-- > 0) throw new ConnectError('later', Code.Unavailable);
  };
  testConsole.publish([httpsEntry('one', [ref(1)])]);
  await startAgent();
  await until(t, 'served', () => caddy.materials.has(hex(1)));
  await until(t, 'reported', () => reports(testConsole, 1n).at(-1)?.length === 0);
  t.true(testConsole.certificateRequests.length >= 1);
});

test.serial('thousands of certificates pass through, and none stays in memory', async (t) => {
  const { testConsole, caddy, startAgent } = await agentParts(t);
  const count = 5000;
  // Takes ten seconds of a core. On a machine that is busy with other tests it waits for them.
  const limit = 540_000;
  // Chains of 20 KB: all of them together are 100 MB.
  const long = material(0).chain[0]!;
  const chain = Array.from({ length: 9 }, () => long);
  const padded = (number: number): CertificateMaterial => {
    const made = material(number);
    return { ...made, chain: [made.chain[0]!, ...chain] };
  };
  testConsole.makeCertificate = ({ certificateId }) => padded(Number(certificateId.slice(4)));
  testConsole.pageSize = count;
  const entries = Array.from({ length: count }, (_, number) => httpsEntry(`s${number}`, [ref(number)]));
  testConsole.publish(entries);
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = used();
  await startAgent();
  await until(t, 'all are there', () => caddy.materials.size === count && caddy.failed.length === 0, limit);
  await until(t, 'reported', () => reports(testConsole, 1n).at(-1)?.length === 0, limit);
  t.true(testConsole.certificateRequests.every((request) => request.certificates.length <= 64));
  testConsole.certificateRequests.length = 0;
  testConsole.applied.length = 0;
  testConsole.heartbeats.length = 0;
  // Entries and positions of both ends of the test are in it; a quarter of the chains would be more.
  await until(t, 'memory is free again', () => (used() - before) / count < 5000, limit);
});
