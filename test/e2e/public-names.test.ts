// What the console and a node ask of the world when nothing is waved through: a certificate authority, servers of names
// and a responder at addresses that look public, on a host of their own with its own resolver.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import test from 'ava';
import { type ConsoleClient, startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { type NameServers, startNameServers } from '../helpers/name-servers.ts';
import { type Authority, startAuthority } from '../helpers/pebble.ts';
import { Processes } from '../helpers/processes.ts';
import { createPublicNetwork, type PublicNetwork } from '../helpers/public-network.ts';
import { createTestDatabase, servers } from '../helpers/servers.ts';
import { tcpProxy, throughProxy } from '../helpers/tcp-proxy.ts';

const at = (host: number) => `20.213.77.${host}`;
const PRIMARY = { name: 'ns1.infra.example.org', address: at(53) };
const SECONDARY = { name: 'ns2.infra.example.org', address: at(54) };
const RESOLVER = at(1);
const EDGE = at(80);
/** Where a former provider of the site answered. */
const ELSEWHERE = at(200);
const CA = { name: 'ca.infra.example.org', address: at(14) };
const RESPONDER = { name: 'ocsp.infra.example.org', address: at(15), port: 8080 };
const PORTS = { web: 3000, node: 3443 };
const ZONE = 'shop.example.net';
const SEEN = { timeoutMs: 180_000, everyMs: 500 };

let network: PublicNetwork;
let names: NameServers;
let authority: Authority;
let site: TestConsoleProcess;
let client: ConsoleClient;
let origin: { address: string; port: number };
let folder: string;
let processes: Processes;
const undo: (() => unknown)[] = [];

test.before('everything runs', async () => {
  folder = mkdtempSync(join(tmpdir(), 'public-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  processes = new Processes(join(folder, 'processes.json'));
  undo.push(() => processes.stopAll());
  const addresses = [PRIMARY.address, SECONDARY.address, RESOLVER, EDGE, CA.address, RESPONDER.address];
  network = createPublicNetwork(addresses, RESOLVER);
  undo.push(() => network.remove());
  const { exec, inside, outside } = network;
  const hosts = [PRIMARY, SECONDARY, CA, RESPONDER].map(({ name, address }) => `${name}. A ${address}`);
  names = await startNameServers({
    exec,
    primary: PRIMARY,
    secondary: SECONDARY,
    resolver: RESOLVER,
    zones: [
      { name: 'infra.example.org', records: hosts },
      {
        name: ZONE,
        records: [
          `@ A ${EDGE}`,
          `www A ${EDGE}`,
          `moved A ${ELSEWHERE}`,
          '_acme-challenge.alias CNAME alias.records.example.org.',
        ],
      },
      { name: 'records.example.org', records: [] },
    ],
  });
  undo.push(() => names.stop());
  authority = await startAuthority({
    processes,
    folder: join(folder, 'pebble'),
    ports: { acme: 14_000, management: 15_000 },
    address: inside,
    listen: '0.0.0.0',
    names: [CA.name],
    httpPort: 80,
    dnsServer: `${RESOLVER}:53`,
    ocspUrl: `http://${RESPONDER.name}:${RESPONDER.port}/`,
    exec,
  });
  undo.push(() => authority.stop());
  await startConsole();
  const originServer = createServer((_request, response) => response.end('origin'));
  await new Promise<void>((resolve) => originServer.listen(0, outside, resolve));
  undo.push(() => originServer.close());
  origin = { address: outside, port: (originServer.address() as AddressInfo).port };
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: [`${outside}/32`] });
  await client.api('PUT', '/settings/acme-directory', { url: authority.url, caPem: authority.caPem });
  const clusters = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const clusterId = clusters.items[0]!.id;
  const node = await startEdgeNode({
    client,
    clusterId,
    listen: ':80',
    httpsListen: ':443',
    kernelBans: 'off',
    exec,
  });
  undo.push(() => node.stop());
});

/** On that host, with the stores of this one. */
async function startConsole(): Promise<void> {
  const { exec, inside, outside } = network;
  const { databaseUrl, redisUrl } = await servers();
  const database = await createTestDatabase({ databaseUrl });
  undo.push(() => database.drop());
  const [toDatabase, toRedis] = await Promise.all(
    [database.url, redisUrl].map((url) => tcpProxy(url, { host: outside })),
  );
  undo.push(() => Promise.all([toDatabase!.close(), toRedis!.close()]));
  site = await startTestConsoleProcess({
    servers: { databaseUrl, redisUrl: throughProxy(redisUrl, toRedis!) },
    database: { url: throughProxy(database.url, toDatabase!) },
    masterKey: randomBytes(32).toString('base64'),
    host: { exec, address: inside },
    env: {
      HOST: inside,
      PORT: String(PORTS.web),
      NODE_API_HOST: '0.0.0.0',
      NODE_API_PORT: String(PORTS.node),
      SVC_NODE_API_URL: `https://${inside}:${PORTS.node}`,
    },
  });
  undo.push(() => site.stop());
  client = site.client;
}

test.afterEach.always('show errors', (t) => {
  const errors =
    site
      ?.log()
      .split('\n')
      .filter((line) => /"level":"(error|fatal)"/.test(line)) ?? [];
  if (!t.passed) t.log(errors.slice(-20).join('\n'));
});

test.after.always('take everything down', async () => {
  for (const each of undo.reverse()) await each();
});

interface Order {
  state: string;
  error: { code: string; params: { names: string[] } } | null;
  steps: { step: string; state: string }[];
}

async function newSite(domains: string[]): Promise<string> {
  const made = await client.api<{ site: { id: string } }>('POST', '/sites', { domains, origins: [origin] });
  return made.site.id;
}

async function request(asked: string[], more: object): Promise<string> {
  const whole = { name: asked[0], names: asked, email: 'ops@example.org', ca: 'custom', ...more };
  return (await client.api<{ id: string }>('POST', '/certificates/request', whole)).id;
}

const progress = (id: string) => client.api<Order>('GET', `/certificates/${id}/progress`);

function orderOver(id: string): Promise<Order> {
  return eventually(
    async () => {
      const now = await progress(id);
      return ['done', 'failed'].includes(now.state) && now;
    },
    { ...SEEN, what: 'the end of the order' },
  );
}

const blockersOf = async (siteId: string) =>
  (await client.api<{ blockers: object[] }>('GET', `/sites/${siteId}/https/check?ca=custom`)).blockers;

/** What a visitor is shown of a host whose chain leads to the authority, with the staple; null without one. */
function visit(host: string): Promise<{ serial: string; staple: Buffer | null }> {
  return new Promise((resolve, reject) => {
    const options = { host: network.inside, port: 443, servername: host, ca: authority.rootPem, requestOCSP: true };
    let staple: Buffer | null = null;
    const socket = connect(options, () => {
      const { serialNumber: serial } = socket.getPeerX509Certificate()!;
      socket.destroy();
      resolve({ serial, staple });
    });
    socket.on('OCSPResponse', (answer: Buffer | null) => {
      staple = answer?.length ? answer : null;
    });
    socket.on('error', reject);
  });
}

test.serial(
  'names that lead to the node get their certificate, others are told, and the staple comes along',
  async (t) => {
    const siteId = await newSite([ZONE, `www.${ZONE}`]);
    t.deepEqual(await blockersOf(siteId), []);
    const movedId = await newSite([`moved.${ZONE}`]);
    t.deepEqual(await blockersOf(movedId), [
      { code: 'dns_not_pointing', name: `moved.${ZONE}`, pointing: 'elsewhere' },
    ]);
    const moved = await request([`moved.${ZONE}`], { bindSiteId: movedId });
    const both = [ZONE, `www.${ZONE}`];
    const whole = { names: both, email: 'ops@example.org', ca: 'custom' };
    const rehearsal = await client.api<{ certificateId: string }>('POST', '/certificates/rehearse', whole);
    t.like(await orderOver(rehearsal.certificateId), { state: 'done', error: null });
    await t.throwsAsync(visit(ZONE));
    const id = await request(both, { bindSiteId: siteId });
    t.like(await orderOver(moved), {
      state: 'failed',
      error: { code: 'http01_dns_not_pointing', params: { names: [`moved.${ZONE}`] } },
    });
    const over = await orderOver(id);
    t.is(over.state, 'done', JSON.stringify(over));
    const { serial, staple } = await eventually(() => visit(ZONE), SEEN);
    t.is(staple, null);

    await startResponder(serial);
    const { settings } = await client.api<{ settings: object }>('GET', `/sites/${siteId}/https`);
    await client.api('PUT', `/sites/${siteId}/https`, { settings: { ...settings, ocspStapling: true } });
    const stapled = await eventually(async () => (await visit(`www.${ZONE}`)).staple ?? undefined, SEEN);
    t.true(stapled.includes(Buffer.from(serial, 'hex')));
  },
);

/** Answers for the certificate in the name of the authority (openssl). */
async function startResponder(serial: string): Promise<void> {
  const [issuer, key] = await Promise.all([
    authority.manage('intermediates/0'),
    authority.manage('intermediate-keys/0'),
  ]);
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const [signer, signerKey] = [file('issuer.pem', issuer), file('issuer.key', key)];
  const index = file('index.txt', `V\t401231235959Z\t\t${serial}\tunknown\t/CN=${ZONE}\n`);
  const signing = ['-CA', signer, '-rsigner', signer, '-rkey', signerKey, '-index', index, '-ndays', '2'];
  const [command = '', ...args] = [...network.exec, 'openssl', 'ocsp', '-port', String(RESPONDER.port), ...signing];
  const logFile = join(folder, 'responder.log');
  processes.start({ name: 'responder', command, args, env: { PATH: process.env.PATH }, logFile });
}

test.serial('a wildcard, its name and an alias are shown by DNS, once every server of the zone answers', async (t) => {
  const { key } = names;
  const credential = (zone: string, more: object = {}) =>
    client.api<{ id: string }>('POST', '/dns-credentials', {
      name: zone,
      provider: 'rfc2136',
      zone,
      server: PRIMARY.name,
      keyName: key.name,
      algorithm: key.algorithm,
      secret: key.secret,
      ...more,
    });
  const { id: main } = await credential(ZONE);
  const { id: records } = await credential('records.example.org');
  const wild = `deep.${ZONE}`;
  const siteId = await newSite([wild, `*.${wild}`]);
  t.deepEqual(await blockersOf(siteId), []);
  process.kill(names.secondary.pid, 'SIGSTOP');
  const byMain = await request([wild, `*.${wild}`], { challenge: 'dns01', dnsCredentialId: main, bindSiteId: siteId });
  const byAlias = await request([`alias.${ZONE}`], { challenge: 'dns01', dnsCredentialId: records });
  const added = [
    `adding _acme-challenge.${wild}`,
    `adding _acme-challenge.${wild}`,
    'adding alias.records.example.org',
  ];
  // Changes are taken by the one; the order waits for the other.
  await eventually(() => names.changes().length >= added.length, SEEN);
  for (const id of [byMain, byAlias]) {
    await eventually(
      async () => (await progress(id)).steps.some(({ step, state }) => step === 'propagate' && state === 'running'),
      SEEN,
    );
  }
  process.kill(names.secondary.pid, 'SIGCONT');
  for (const id of [byMain, byAlias]) {
    const over = await orderOver(id);
    t.is(over.state, 'done', JSON.stringify(over));
  }
  const changes = await eventually(() => {
    const seen = names.changes();
    return seen.length === 2 * added.length && seen;
  }, SEEN);
  const removed = added.map((line) => line.replace('adding', 'deleting'));
  t.deepEqual(changes.toSorted(), [...added, ...removed].toSorted());
  t.deepEqual(await blockersOf(siteId), []);
  await eventually(() => visit(`any.${wild}`), SEEN);

  // A key that the server does not know is told as such.
  const { id: stranger } = await credential(ZONE, { keyName: 'stranger.example.org' });
  const refused = await request([`*.${ZONE}`], { challenge: 'dns01', dnsCredentialId: stranger });
  t.like(await orderOver(refused), { state: 'failed', error: { code: 'dns_unauthorized' } });
  t.is(names.changes().length, changes.length);
});
