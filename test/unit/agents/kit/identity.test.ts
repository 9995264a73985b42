import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { enroll, NodeChannel, type NodeIdentity } from '../../../../agents/kit/channel-client.ts';
import { loadIdentity, promoteNext, renewalDue, saveIdentity, saveNextKey } from '../../../../agents/kit/identity.ts';
import { Renewal } from '../../../../agents/kit/renewal.ts';
import { TestAuthority } from '../helpers/authority.ts';
import { TestConsole } from '../helpers/console.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

async function enrolled(
  t: ExecutionContext,
): Promise<{ folder: string; identity: NodeIdentity; testConsole: TestConsole }> {
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  t.teardown(() => testConsole.stop());
  const identity = await enroll({
    serverUrl: testConsole.url,
    caSha256: testConsole.authority.pin,
    token: 'ewt_goodtoken1',
    info: {},
  });
  const folder = temporaryFolder(t);
  saveIdentity(folder, identity, new Date());
  return { folder, identity, testConsole };
}

test('an identity comes back as it was written, with a key only its owner can read', async (t) => {
  const { folder, identity } = await enrolled(t);
  t.deepEqual(loadIdentity(folder), identity);
  t.is(statSync(join(folder, 'node.key')).mode & 0o777, 0o600);
  const file = JSON.parse(readFileSync(join(folder, 'identity.json'), 'utf8')) as Record<string, string>;
  t.deepEqual(Object.keys(file).sort(), [
    'ca_sha256',
    'cluster_id',
    'enrolled_at',
    'node_id',
    'node_name',
    'server_name',
    'server_url',
  ]);
});

test('without identity.json there is no identity, whatever else is there', async (t) => {
  const { folder } = await enrolled(t);
  rmSync(join(folder, 'identity.json'));
  t.is(loadIdentity(folder), undefined);
});

test('files that do not fit together are refused with what to do', async (t) => {
  const { folder } = await enrolled(t);
  const other = await enrolled(t);
  const key = readFileSync(join(folder, 'node.key'));
  renameSync(join(other.folder, 'node.key'), join(folder, 'node.key'));
  t.throws(() => loadIdentity(folder), { message: /enroll again/ });
  writeFileSync(join(folder, 'node.key'), key);
  renameSync(join(other.folder, 'ca.crt'), join(folder, 'ca.crt'));
  t.throws(() => loadIdentity(folder), { message: /enroll again/ });
  writeFileSync(join(folder, 'identity.json'), '{"node_id": 5}');
  t.throws(() => loadIdentity(folder), { message: /enroll again/ });
  writeFileSync(join(folder, 'identity.json'), 'half a fi');
  t.throws(() => loadIdentity(folder), { message: /enroll again/ });
});

test('renewal is due when less than a third of the lifetime is left', async (t) => {
  const authority = await TestAuthority.create();
  const day = 24 * 3600_000;
  const now = Date.now();
  const { createCertificateRequest } = await import('../../../../agents/kit/certificate-request.ts');
  const { csrPem } = await createCertificateRequest('n');
  const certificate = await authority.issue(csrPem, 'n', {
    notBefore: new Date(now),
    notAfter: new Date(now + 30 * day),
  });
  t.false(renewalDue(certificate, now + 19.9 * day));
  t.true(renewalDue(certificate, now + 20.1 * day));
});

test('a renewal asked for brings a new key and certificate that open the channel', async (t) => {
  const { folder, identity, testConsole } = await enrolled(t);
  const channel = new NodeChannel(identity);
  t.teardown(() => channel.close());
  const renewed: NodeIdentity[] = [];
  const renewal = new Renewal({
    stateDir: folder,
    log: memoryLog().log,
    identity,
    renewed: (next) => renewed.push(next),
  });
  await renewal.check(channel, false);
  t.is(renewed.length, 0, 'not due');
  await renewal.check(channel, true);
  t.is(renewed.length, 1);
  t.not(renewed[0]!.keyPem, identity.keyPem);
  t.deepEqual(loadIdentity(folder), renewed[0]);
  t.false(readdirSync(folder).some((name) => name.includes('next')));
  await renewal.check(channel, true);
  t.is(renewed.length, 1, 'at most once a minute');
  const next = new NodeChannel(renewed[0]!);
  t.teardown(() => next.close());
  t.is((await next.heartbeat({})).intervalSeconds, 15);
  t.is(testConsole.calls.filter((name) => name === 'renewCertificate').length, 1);
});

test('a certificate of another authority is not taken over', async (t) => {
  const { folder, identity, testConsole } = await enrolled(t);
  const channel = new NodeChannel(identity);
  t.teardown(() => channel.close());
  Object.defineProperty(testConsole, 'authority', { value: await TestAuthority.create() });
  const { log, lines } = memoryLog();
  const renewal = new Renewal({ stateDir: folder, log, identity, renewed: () => t.fail() });
  await renewal.check(channel, true);
  t.true(lines.some((line) => line.includes('certificate not renewed')));
  t.deepEqual(loadIdentity(folder), identity);
});

test('a renewal interrupted anywhere leaves a pair that fits', async (t) => {
  const { folder, identity, testConsole } = await enrolled(t);
  const { createCertificateRequest } = await import('../../../../agents/kit/certificate-request.ts');
  const next = await createCertificateRequest('n');
  const certificate = await testConsole.authority.issue(next.csrPem, 'node-1');
  saveNextKey(folder, next.keyPem);
  t.is(loadIdentity(folder)!.keyPem, identity.keyPem, 'only the next key');
  writeFileSync(join(folder, 'node.next.crt'), certificate);
  t.is(loadIdentity(folder)!.keyPem, identity.keyPem, 'both next files');
  renameSync(join(folder, 'node.next.key'), join(folder, 'node.key'));
  t.is(loadIdentity(folder)!.certificatePem, certificate, 'key moved, certificate not yet');
  saveNextKey(folder, next.keyPem);
  promoteNext(folder, certificate);
  t.is(loadIdentity(folder)!.keyPem, next.keyPem);
  t.false(existsSync(join(folder, 'node.next.crt')));
});
