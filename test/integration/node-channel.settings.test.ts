import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { createServer as createTcpServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { CertificateAuthorityRow } from '../../models/nodes/certificate-authority.ts';
import { checkAddress } from '../../services/node-channel-settings/check.ts';
import { foreignIssuer, issueLeaf } from '../helpers/certificates.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let authorityPem: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  authorityPem = (await CertificateAuthorityRow.current(api.sql))!.certificatePem;
});
test.after.always('stop', () => running?.stop());

const PATH = '/settings/node-channel';
const byDefault = { url: '', effectiveUrl: 'https://localhost:8443', source: 'default' };

test.serial('an address is saved as its origin, cleared with an empty text, and audited', async (t) => {
  t.deepEqual(await api.ok('GET', PATH), byDefault);
  const saved = await api.ok('PUT', PATH, { url: 'https://Edge.Example:9443/' });
  t.deepEqual(saved, {
    url: 'https://edge.example:9443',
    effectiveUrl: 'https://edge.example:9443',
    source: 'setting',
  });
  t.deepEqual(await api.ok('GET', PATH), saved);
  t.deepEqual(await api.ok('PUT', PATH, { url: 'https://edge.example:9443' }), saved);
  const { id } = (await api.ok('GET', '/clusters')).items[0];
  t.is((await api.ok('POST', '/enrollment-tokens', { clusterId: id })).serverUrl, 'https://edge.example:9443');
  t.deepEqual(await api.ok('PUT', PATH, { url: '' }), byDefault);
  t.deepEqual(
    (await api.audit('node_channel')).map(({ action, metadata }) => [action, metadata.url]),
    [
      ['system.node_channel_update', 'https://edge.example:9443'],
      ['system.node_channel_update', ''],
    ],
  );
});

test.serial('anything but https, host and port is refused and changes nothing', async (t) => {
  for (const url of [
    'http://edge.example',
    'https://edge.example/x',
    'https://a@edge.example',
    'https://edge.example?a',
    'edge.example',
    7,
    null,
  ]) {
    await api.badField(t, '/url', 'PUT', PATH, { url });
  }
  await api.badField(t, '/url', 'PUT', PATH, {});
  t.deepEqual(await api.ok('GET', PATH), byDefault);
});

test.serial(
  'a saved address with a special purpose is refused without a connection, and the answer is kept a while',
  async (t) => {
    let connections = 0;
    const server = createTcpServer(() => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    const { port } = server.address() as { port: number };
    await api.ok('PUT', PATH, { url: `https://127.0.0.1:${port}` });
    const first = await api.ok('GET', '/settings/node-channel-check');
    t.like(first, { url: `https://127.0.0.1:${port}`, result: 'refused' });
    t.deepEqual(await api.ok('GET', '/settings/node-channel-check'), first);
    t.is(connections, 0);
    await api.ok('PUT', PATH, { url: '' });
  },
);

const saved = (effectiveUrl: string) => checkAddress({ effectiveUrl, source: 'setting' }, authorityPem);

/** A server on this machine that counts who connects. */
async function counting(t: ExecutionContext): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  t.teardown(() => server.close());
  return { port: (server.address() as { port: number }).port, connections: () => connections };
}

test.serial('no spelling of an address with a special purpose leads to a connection', async (t) => {
  const { port, connections } = await counting(t);
  for (const host of [
    'localhost',
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0177.0.0.1',
    '0x7f.0.0.1',
    '0x7f000001',
    '0.0.0.0',
    '169.254.169.254',
    '[::]',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::1]',
    '[fd00::1]',
    '[fe80::1]',
  ]) {
    t.is(await saved(`https://${host}:${port}`), 'refused', host);
  }
  t.is(connections(), 0);
});

test.serial('a name that is judged by one answer of its resolver is not asked again for the connection', async (t) => {
  const { port, connections } = await counting(t);
  let asked = 0;
  // Nobody has this address, and it is no special-purpose one. Whoever asks a second time is sent to this machine.
  const answer = () => [asked++ === 0 ? { address: '3ffe::1', family: 6 } : { address: '127.0.0.1', family: 4 }];
  const before = { lookup: dns.lookup, promises: dns.promises.lookup };
  t.teardown(() => {
    Object.assign(dns, { lookup: before.lookup });
    Object.assign(dns.promises, { lookup: before.promises });
    syncBuiltinESMExports();
  });
  Object.assign(dns.promises, { lookup: async () => answer() });
  Object.assign(dns, {
    lookup: (_name: string, _options: object, done: (error: null, ...given: unknown[]) => void) => {
      const [{ address, family }] = answer() as [{ address: string; family: number }];
      done(null, address, family);
    },
  });
  syncBuiltinESMExports();
  t.is(await saved(`https://rebound.example:${port}`), 'unreachable');
  t.is(asked, 1);
  t.is(connections(), 0);
});

const environment = (effectiveUrl: string) => checkAddress({ effectiveUrl, source: 'environment' }, authorityPem);

test('the channel itself is ok', async (t) => {
  t.is(await environment(running.nodeApiUrl), 'ok');
});

test('nothing there, or something that does not speak, is unreachable', async (t) => {
  const silent = createTcpServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  t.teardown(() => silent.close());
  t.is(await environment(`https://127.0.0.1:${port}`), 'unreachable');
  t.is(await environment('https://127.0.0.1:1'), 'unreachable');
  t.is(await environment('https://no-such-host.invalid'), 'unreachable');
});

test('another chain, also one that names the authority without its key, and plain http are a mismatch', async (t) => {
  const issuer = await foreignIssuer(running.running.runtime);
  const { keyPem, certificatePem } = await issueLeaf(issuer, { nodeId: 'impostor' });
  for (const chain of [certificatePem, `${certificatePem}\n${authorityPem}`]) {
    const server = createTlsServer({ key: keyPem, cert: chain });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    t.is(await environment(`https://127.0.0.1:${port}`), 'mismatch');
    server.close();
  }
  t.is(await environment('http://127.0.0.1:1'), 'mismatch');
});
