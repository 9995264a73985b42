import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import test from 'ava';
import { launchCheck } from '../../services/sites/launch-check.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let dns: DnsServer;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  dns = await DnsServer.start();
});
test.after.always('stop', async () => {
  dns?.close();
  await running?.stop();
});

const A = 1;
const AAAA = 28;

/** A name server that answers from a table: addresses, none, an error code, or not at all. */
class DnsServer {
  readonly names = new Map<string, { a?: string; aaaa?: number[]; code?: number; silent?: boolean }>();
  readonly asked: string[] = [];
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (query, peer) => {
      const answer = this.#answer(query);
      if (answer) socket.send(answer, peer.port, peer.address);
    });
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new DnsServer(socket);
  }

  resolver(): Resolver {
    const resolver = new Resolver({ timeout: 300, tries: 1 });
    resolver.setServers([`127.0.0.1:${this.#socket.address().port}`]);
    return resolver;
  }

  close(): void {
    this.#socket.close();
  }

  #answer(query: Buffer): Buffer | null {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at]!; length > 0; length = query[at]!) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const name = labels.join('.').toLowerCase();
    const type = query.readUInt16BE(at + 1);
    this.asked.push(name);
    const record = this.names.get(name) ?? this.names.get(labels.slice(1).join('.').replace(/^/, '*.'));
    if (record?.silent) return null;
    const data = type === A && record?.a ? record.a.split('.').map(Number) : type === AAAA ? record?.aaaa : undefined;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (record ? (record.code ?? 0) : 3), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(data ? 1 : 0, 6);
    const question = query.subarray(12, at + 5);
    if (!data) return Buffer.concat([header, question]);
    const answer = Buffer.alloc(12);
    answer.writeUInt16BE(0xc00c, 0);
    answer.writeUInt16BE(type, 2);
    answer.writeUInt16BE(1, 4);
    answer.writeUInt32BE(60, 6);
    answer.writeUInt16BE(data.length, 10);
    return Buffer.concat([header, question, answer, Buffer.from(data)]);
  }
}

test('the launch check tells where names point', async (t) => {
  const clusterId = await api.cluster('launch');
  await api.node(clusterId, 'n1', { addresses: ['8.8.8.1', '10.0.0.1', '2001:4860::1'] });
  const configured = await api.node(clusterId, 'n2', { addresses: ['8.8.8.99'] });
  await api.sql('node_address').insert({
    node_id: configured,
    cluster_id: clusterId,
    address: '10.9.9.9',
    source: 'configured',
  });
  // Seen, not reported: a NAT gateway or proxy in front of the node.
  const seen = await api.node(clusterId, 'n3');
  for (const node_id of [configured, seen]) {
    await api.sql('node_address').insert({ node_id, cluster_id: clusterId, address: '8.8.4.4', source: 'remote' });
  }
  await api.node(clusterId, 'off', { addresses: ['8.8.8.2'], online: false });
  await api.node(clusterId, 'disabled', { addresses: ['8.8.8.3'], status: 'disabled' });
  const domains = [
    'ok.example',
    'both.example',
    'elsewhere.example',
    'mixed.example',
    'missing.example',
    'broken.example',
    'silent.example',
    '*.wild.example',
    '.suffix.example',
    '~pattern',
  ];
  const edgeV6 = [0x20, 1, 0x48, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
  dns.names.set('ok.example', { a: '8.8.8.1' });
  dns.names.set('both.example', { a: '10.9.9.9', aaaa: edgeV6 });
  dns.names.set('elsewhere.example', { a: '8.8.8.2' });
  dns.names.set('mixed.example', { a: '9.9.9.9', aaaa: edgeV6 });
  dns.names.set('broken.example', { code: 2 });
  dns.names.set('silent.example', { silent: true });
  dns.names.set('*.wild.example', { a: '8.8.8.1' });
  const site = await api.site(clusterId, 'unused.example', { domains });
  const launch = await launchCheck(running.running.runtime, { id: site.id }, dns.resolver());
  t.deepEqual(launch.addresses, ['8.8.8.1', '10.9.9.9', '2001:4860::1']);
  t.deepEqual(Object.fromEntries(launch.domains.map(({ name, pointing }) => [name, pointing])), {
    'ok.example': 'ok',
    'both.example': 'ok',
    'elsewhere.example': 'elsewhere',
    'mixed.example': 'elsewhere',
    'missing.example': 'unresolved',
    'broken.example': 'unknown',
    'silent.example': 'unknown',
    '*.wild.example': 'ok',
    '.suffix.example': 'unchecked',
    '~pattern': 'unchecked',
  });
  const probes = Object.fromEntries(launch.domains.map(({ name, probe }) => [name, probe]));
  t.is(probes['ok.example'], 'ok.example');
  t.regex(probes['*.wild.example']!, /^[a-z0-9-]+\.wild\.example$/);
  t.true(dns.asked.includes(probes['*.wild.example']!));
  t.is(probes['.suffix.example'], null);
  t.deepEqual(launch.certificate, { state: 'none', id: null, name: null, uncovered: [], partly: [], error: null });
  t.is(launch.delivery.totalNodes, 3);
});

test('without an edge address nothing can be compared', async (t) => {
  dns.names.set('lonely.example', { a: '8.8.8.1' });
  const site = await api.site(await api.cluster('empty'), 'lonely.example');
  const launch = await launchCheck(running.running.runtime, { id: site.id }, dns.resolver());
  t.deepEqual(launch.addresses, []);
  t.is(launch.domains[0]!.pointing, 'unknown');
});

test('fifty names and a name server that says nothing: an answer all the same', async (t) => {
  const domains = Array.from({ length: 50 }, (_, index) => `quiet${index}.example`);
  for (const name of domains) dns.names.set(name, { silent: true });
  const site = await api.site(await api.cluster('quiet'), 'unused2.example', { domains });
  const launch = await launchCheck(running.running.runtime, { id: site.id }, dns.resolver());
  t.deepEqual(new Set(launch.domains.map(({ pointing }) => pointing)), new Set(['unknown']));
});

test('over HTTP with the resolver of the machine', async (t) => {
  const site = await api.site(await api.cluster('http'), 'nothing.invalid');
  const launch = await api.ok('GET', `/sites/${site.id}/launch`);
  t.is(launch.domains[0].name, 'nothing.invalid');
  t.true(['unresolved', 'unknown'].includes(launch.domains[0].pointing));
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/launch');
});

test('origins that edges leave out are told, with why: a group that no rule chooses, an address that is not allowed any more', async (t) => {
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: ['10.0.0.0/8'] });
  const site = await api.site(await api.cluster('left-out'), 'left-out.example', {
    origins: [
      { address: 'origin.example' },
      { address: 'other.example', port: 8080, group: 'blue' },
      { address: '10.9.8.7' },
    ],
  });
  const launch = () => launchCheck(running.running.runtime, { id: site.id }, dns.resolver());
  const group = { address: 'other.example', port: 8080, reason: 'group' as const };
  t.deepEqual((await launch()).leftOutOrigins, [group]);
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: [] });
  const address = { address: '10.9.8.7', port: 80, reason: 'address' as const };
  t.deepEqual((await launch()).leftOutOrigins, [group, address]);
  const rule = { name: 'Blue', phase: 'origin', expression: 'true', action: { kind: 'origin', originGroup: 'blue' } };
  const save = (enabled: boolean) => api.ok('PUT', `/sites/${site.id}/rules`, { rules: [{ ...rule, enabled }] });
  await save(false);
  t.deepEqual((await launch()).leftOutOrigins, [group, address]);
  await save(true);
  t.deepEqual((await launch()).leftOutOrigins, [address]);
});
