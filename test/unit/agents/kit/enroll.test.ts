import test, { type ExecutionContext } from 'ava';
import { enroll, NodeChannel } from '../../../../agents/kit/channel-client.ts';
import { keyMatches, PinError } from '../../../../agents/kit/pinned-tls.ts';
import { TestAuthority } from '../helpers/authority.ts';
import { TestConsole, type TestConsoleOptions } from '../helpers/console.ts';

const HOUR_MS = 3600_000;

async function console_(t: ExecutionContext, options: Partial<TestConsoleOptions> = {}): Promise<TestConsole> {
  const running = await TestConsole.start({
    authority: options.authority ?? (await TestAuthority.create()),
    ...options,
  });
  t.teardown(() => running.stop());
  return running;
}

function enrollAt(running: TestConsole, extra: Partial<Parameters<typeof enroll>[0]> = {}) {
  return enroll({
    serverUrl: running.url,
    caSha256: running.authority.pin,
    token: 'ewt_goodtoken1',
    info: { hostname: 'edge-1' },
    ...extra,
  });
}

test('a token becomes an identity whose certificate fits a key made here', async (t) => {
  const running = await console_(t);
  const identity = await enrollAt(running);
  t.is(identity.nodeId, 'node-1');
  t.is(identity.clusterId, 'cluster-1');
  t.true(keyMatches(identity.certificatePem, identity.keyPem));
  t.is(identity.authorityPem.trim(), running.authority.pem.trim());
  t.deepEqual(running.tokens, ['ewt_goodtoken1']);
});

test('the identity opens the channel', async (t) => {
  const running = await console_(t);
  const channel = new NodeChannel(await enrollAt(running));
  t.teardown(() => channel.close());
  const answer = await channel.heartbeat({});
  t.is(answer.intervalSeconds, 15);
});

test('a fingerprint with colons and capitals is the same fingerprint', async (t) => {
  const running = await console_(t);
  const pin = running.authority.pin.toUpperCase().match(/../g)!.join(':');
  t.is((await enrollAt(running, { caSha256: `SHA256:${pin}` })).caSha256, running.authority.pin);
});

test('another fingerprint: the token is never sent', async (t) => {
  const running = await console_(t);
  await t.throwsAsync(enrollAt(running, { caSha256: 'ab'.repeat(32) }), { instanceOf: PinError });
  t.deepEqual(running.tokens, []);
});

test('the fingerprint of the server certificate itself is no pin: it is no authority', async (t) => {
  const authority = await TestAuthority.create();
  const leaf = await authority.serverLeaf();
  const running = await console_(t, { authority, leaf });
  const { certificatePin } = await import('../../../../agents/kit/pinned-tls.ts');
  await t.throwsAsync(enrollAt(running, { caSha256: certificatePin(leaf.certificatePem) }), { instanceOf: PinError });
  t.deepEqual(running.tokens, []);
});

test('the pinned authority shown beside a certificate it did not issue: the token is never sent', async (t) => {
  const pinned = await TestAuthority.create('pinned');
  const attacker = await TestAuthority.create('attacker');
  const running = await console_(t, { authority: attacker, leaf: await attacker.serverLeaf(), chain: [pinned.pem] });
  await t.throwsAsync(enrollAt(running, { caSha256: pinned.pin }));
  const both = await console_(t, {
    authority: attacker,
    leaf: await attacker.serverLeaf(),
    chain: [attacker.pem, pinned.pem],
  });
  await t.throwsAsync(enrollAt(both, { caSha256: pinned.pin }));
  t.deepEqual([...running.tokens, ...both.tokens], []);
});

test('an authority of the same name and another key: the token is never sent', async (t) => {
  const pinned = await TestAuthority.create('console authority');
  const twin = await TestAuthority.create('console authority');
  const running = await console_(t, { authority: twin, leaf: await twin.serverLeaf(), chain: [pinned.pem] });
  await t.throwsAsync(enrollAt(running, { caSha256: pinned.pin }));
  t.deepEqual(running.tokens, []);
});

test('an expired server certificate: the token is never sent', async (t) => {
  const authority = await TestAuthority.create();
  const leaf = await authority.serverLeaf({
    notBefore: new Date(Date.now() - 2 * HOUR_MS),
    notAfter: new Date(Date.now() - HOUR_MS),
  });
  const running = await console_(t, { authority, leaf });
  await t.throwsAsync(enrollAt(running), { message: /expired/i });
  t.deepEqual(running.tokens, []);
});

test('a server certificate that is not valid yet: the token is never sent', async (t) => {
  const authority = await TestAuthority.create();
  const running = await console_(t, {
    authority,
    leaf: await authority.serverLeaf({ notBefore: new Date(Date.now() + HOUR_MS) }),
  });
  await t.throwsAsync(enrollAt(running));
  t.deepEqual(running.tokens, []);
});

test('a server certificate with another name: the token is never sent, unless that name was asked for', async (t) => {
  const authority = await TestAuthority.create();
  const running = await console_(t, { authority, leaf: await authority.serverLeaf({ names: ['console.example'] }) });
  await t.throwsAsync(enrollAt(running));
  t.deepEqual(running.tokens, []);
  t.is((await enrollAt(running, { serverName: 'console.example' })).serverName, 'console.example');
});

test('a client certificate presented by a server: the token is never sent', async (t) => {
  const authority = await TestAuthority.create();
  const running = await console_(t, { authority, leaf: await authority.clientLeaf('localhost') });
  await t.throwsAsync(enrollAt(running));
  t.deepEqual(running.tokens, []);
});

test('a chain without the authority: the token is never sent', async (t) => {
  const running = await console_(t, { chain: [] });
  await t.throwsAsync(enrollAt(running), { instanceOf: PinError });
  t.deepEqual(running.tokens, []);
});

test('the answer brings another authority: no identity', async (t) => {
  const running = await console_(t);
  const { pin } = running.authority;
  Object.defineProperty(running, 'authority', { value: await TestAuthority.create() });
  await t.throwsAsync(enrollAt(running, { caSha256: pin }), {
    instanceOf: PinError,
    message: /another certificate authority/,
  });
  t.deepEqual(running.tokens, ['ewt_goodtoken1']);
});

test('a refused token is an error with the reason', async (t) => {
  const running = await console_(t);
  await t.throwsAsync(enrollAt(running, { token: 'ewt_usedtoken1' }), { message: /token is not valid/ });
});

test('a server that is not there, and one that speaks no TLS, are errors', async (t) => {
  await t.throwsAsync(
    enroll({ serverUrl: 'https://127.0.0.1:1', caSha256: 'ab'.repeat(32), token: 'ewt_goodtoken1', info: {} }),
  );
  const { createServer } = await import('node:net');
  const plain = createServer((socket) => socket.end('hello'));
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  t.teardown(() => plain.close());
  const { port } = plain.address() as { port: number };
  await t.throwsAsync(
    enroll({ serverUrl: `https://127.0.0.1:${port}`, caSha256: 'ab'.repeat(32), token: 'ewt_goodtoken1', info: {} }),
  );
});
