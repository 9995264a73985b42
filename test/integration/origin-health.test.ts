// Health of origins: nodes check origins and report those that fail, visitors are spared them, and the console says which.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startNodeConsole } from '../helpers/local-edge.ts';
import { Overview } from '../helpers/overview.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body, originIdsOf } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startNodeConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const FEATURES = ['active-health-v1', 'bans-v1'];
const CHECK = {
  enabled: true,
  path: '/up',
  intervalSeconds: 5,
  timeoutSeconds: 1,
  healthyThreshold: 1,
  unhealthyThreshold: 1,
};

const health = async (id: string): Promise<Body[]> => {
  const { items, total } = await api.ok('GET', `/sites/${id}/origin-health`);
  if (items.length !== total) throw new Error('total is wrong');
  return items;
};
test('each origin has an entry of every online node and source; what nodes report comes first', async (t) => {
  const clusterId = await api.cluster('reports');
  const origins = [{ address: 'a.example' }, { address: 'b.example', scheme: 'https', backup: true }];
  const { id } = await api.site(clusterId, 'reports.example', {
    origins,
    originSettings: { activeHealthCheck: CHECK },
  });
  const [first = '', second = ''] = await originIdsOf(api, clusterId, id);
  const able = await ReportingNode.enroll(running, clusterId, FEATURES);
  const old = await ReportingNode.enroll(running, clusterId, ['bans-v1']);
  t.teardown(() => {
    able.stop();
    old.stop();
  });
  const at = Date.parse('2026-01-02T03:04:05.000Z');
  const told = (more: Body) => ({ siteId: id, originId: first, lastFailureMs: BigInt(at), ...more });
  await old.beat({});
  await able.beat({
    originHealth: [
      told({
        active: true,
        error: 'upstream_status',
        status: 503,
        consecutiveFailures: 4,
        downSinceMs: BigInt(at),
        downUntilMs: BigInt(at + 90_000),
        lastCheckMs: BigInt(at + 1000),
      }),
      told({ healthy: true, error: 'timeout', consecutiveFailures: 2, lastFailureMs: BigInt(at + 5000) }),
      told({ originId: second, healthy: true, active: true, stretchedSeconds: 40 }),
    ],
  });
  const [a, b] = await eventually(async () => {
    const items = await health(id);
    return items[0]!.downNodes === 1 && items[0]!.onlineNodes === 2 && items;
  });
  t.like(a, { address: 'a.example', scheme: 'http', port: 80, backup: false, group: '', totalNodes: 2 });
  t.like(a, {
    lastErrorCode: 'upstream_status',
    lastErrorParams: { status: 503 },
    lastError: 'A response with status 503.',
  });
  t.deepEqual(
    a!.nodes.map((node: Body) => [node.nodeId, node.source, node.healthy]),
    [[able.id, 'active', false], ...a!.nodes.slice(1).map((node: Body) => [node.nodeId, 'passive', true])],
  );
  t.deepEqual(
    a!.nodes
      .slice(1)
      .map(({ nodeId }: Body) => nodeId)
      .sort(),
    [able.id, old.id].sort(),
  );
  t.like(a!.nodes[0], {
    consecutiveFailures: 4,
    lastFailureAt: '2026-01-02T03:04:05.000Z',
    downSince: '2026-01-02T03:04:05.000Z',
    downUntil: '2026-01-02T03:05:35.000Z',
    lastCheckAt: '2026-01-02T03:04:06.000Z',
    checkIntervalSeconds: null,
  });
  t.like(
    a!.nodes.find(({ nodeId, source }: Body) => nodeId === able.id && source === 'passive'),
    {
      healthy: true,
      consecutiveFailures: 2,
      lastErrorCode: 'timeout',
      downSince: null,
    },
  );
  t.like(b, { address: 'b.example', backup: true, downNodes: 0, lastError: null, lastFailureAt: null });
  t.is(b!.nodes.length, 3);
  t.is(b!.nodes.find(({ source }: Body) => source === 'active').checkIntervalSeconds, 40);
  // Down by both sources is down once.
  await able.beat({ originHealth: [told({ active: true, error: 'timeout' }), told({ error: 'tls_failed' })] });
  const [both] = await eventually(async () => {
    const items = await health(id);
    return items[0]!.nodes.filter(({ healthy }: Body) => !healthy).length === 2 && items;
  });
  t.is(both!.downNodes, 1);
  // Needs attention: on half of the nodes, and named by its site.
  const attention = async () =>
    (await new Overview(api).get(clusterId)).attention.filter(({ kind }: Body) => kind === 'origins_down');
  const item = await eventually(async () => (await attention())[0]);
  t.like(item, { level: 'act', count: 1, clusterName: 'reports', at: null });
  t.deepEqual(item.named, [{ type: 'site', id, name: 'reports.example', reason: null }]);
  // Of a silent node nothing is known.
  await able.fallSilent();
  const [silent] = await eventually(async () => {
    const items = await health(id);
    return items[0]!.onlineNodes === 1 && items;
  });
  t.like(silent, { downNodes: 0, totalNodes: 2, lastError: null });
  await eventually(async () => (await attention()).length === 0);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/origin-health');
});

test('reports that make no sense are left out, and a cut one says nothing of other origins', async (t) => {
  const clusterId = await api.cluster('odd');
  const { id } = await api.site(clusterId, 'odd.example');
  const elsewhere = (await api.site(await api.cluster('far'), 'far.example')).id;
  const [originId = ''] = await originIdsOf(api, clusterId, id);
  const node = await ReportingNode.enroll(running, clusterId, FEATURES);
  t.teardown(() => node.stop());
  await node.beat({
    originHealth: [
      { siteId: elsewhere, originId, error: 'timeout' },
      { siteId: "'; drop table site; --", originId, error: 'timeout' },
      { siteId: '__proto__', originId, error: 'timeout' },
      { siteId: id, originId: 'another', error: 'timeout' },
      { siteId: id, originId: 'x'.repeat(1000), error: 'timeout' },
      {
        siteId: id,
        originId,
        error: 'no such',
        status: 4_000_000_000,
        consecutiveFailures: 4_000_000_000,
        lastFailureMs: 2n ** 62n,
        downUntilMs: -1n,
        stretchedSeconds: 4_000_000_000,
      },
    ],
  });
  const [odd] = await eventually(async () => {
    const items = await health(id);
    return items[0]!.downNodes === 1 && items;
  });
  t.is(odd!.nodes.length, 1);
  t.like(odd!.nodes[0], { lastError: null, lastErrorCode: null, lastFailureAt: null, downUntil: null, healthy: false });
  t.is((await health(elsewhere))[0]!.downNodes, 0);
  await node.beat({
    originHealth: Array.from({ length: 1000 }, (_, n) => ({ siteId: `s${n}`, originId: 'o', error: 'timeout' })),
  });
  const [unknown] = await eventually(async () => {
    const items = await health(id);
    return items[0]!.nodes.length === 0 && items;
  });
  t.like(unknown, { downNodes: 0, onlineNodes: 1 });
});

test('requests and failures of an origin are those of all online nodes; what makes no sense is left out', async (t) => {
  const clusterId = await api.cluster('traffic');
  const { id } = await api.site(clusterId, 'traffic.example');
  const [originId = ''] = await originIdsOf(api, clusterId, id);
  const nodes = await Promise.all([1, 2].map(() => ReportingNode.enroll(running, clusterId, FEATURES)));
  t.teardown(() => {
    for (const node of nodes) node.stop();
  });
  const [one, other] = nodes as [ReportingNode, ReportingNode];
  const told = (more: Body) => ({ siteId: id, originId, ...more });
  await one.beat({
    originTraffic: [told({ requests: 20, latency: [0, 18, 1], failures: [{ name: 'timeout', count: 1n }] })],
  });
  await other.beat({
    originTraffic: [
      told({ requests: 5, latency: [] }),
      told({
        requests: 4_000_000_000,
        latency: Array.from({ length: 100 }, (_, bucket) => (bucket === 2 ? 1 : 0)),
        failures: [
          { name: 'timeout', count: 2n },
          { name: 'connections_in_use', count: 2n ** 63n },
          { name: 'no such', count: 1n },
        ],
      }),
      told({ originId: 'another', requests: 5 }),
      told({ siteId: '__proto__', requests: 5 }),
    ],
  });
  const traffic = async () => (await health(id))[0]!.traffic;
  const both = await eventually(async () => {
    const found = await traffic();
    return found?.nodes === 2 && found;
  });
  t.like(both, { requests: 1_000_000_020, p50Ms: 2, p95Ms: 4 });
  t.deepEqual(both.failures, [
    { error: 'connections_in_use', count: 1_000_000_000 },
    { error: 'timeout', count: 3 },
  ]);
  t.deepEqual([both.latency.length, ...both.latency.slice(0, 4)], [24, 0, 18, 2, 0]);
  await other.fallSilent();
  await one.beat({});
  await eventually(async () => (await traffic()) === null);
});

/** An origin whose checks get what a test says, while visitors always get its name. */
class CheckedOrigin {
  status = 200;
  hangs = false;
  readonly checks: { host: string; agent: string; at: number }[] = [];
  connections = 0;
  readonly name: string;
  readonly server: Server;

  constructor(name: string) {
    this.name = name;
    this.server = createServer((request, response) => {
      if (request.url !== '/up') return void response.end(this.name);
      const { host = '', 'user-agent': agent = '' } = request.headers;
      this.checks.push({ host, agent, at: performance.now() });
      if (!this.hangs) response.writeHead(this.status).end();
    });
    this.server.on('connection', () => this.connections++);
  }

  async listen(address = '127.0.0.1'): Promise<{ address: string; port: number }> {
    await new Promise<void>((resolve) => this.server.listen(0, address, resolve));
    return { address, port: (this.server.address() as AddressInfo).port };
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

test('an edge takes out what its checks find, spares visitors, and reports cause and recovery', async (t) => {
  const clusterId = await api.cluster('real');
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  const [a, b, forbidden] = [new CheckedOrigin('a'), new CheckedOrigin('b'), new CheckedOrigin('forbidden')];
  const [atA, atB, atForbidden] = [await a.listen(), await b.listen(), await forbidden.listen('127.0.0.2')];
  t.teardown(() => {
    for (const origin of [a, b, forbidden]) origin.stop();
  });
  const site = async (domain: string, origins: object[], host = 'check.example') =>
    (await api.site(clusterId, domain, { origins, originSettings: { activeHealthCheck: { ...CHECK, host } } })).id;
  const both = await site('both.example', [atA, atB]);
  const shares = await site('shares.example', [atA]);
  const refused = await site('refused.example', [atForbidden], 'forbidden.example');
  // Only the nodes judge an origin that was saved before the list shrank.
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.1/32'] });
  const { ask } = await startLocalEdge(t, running, clusterId);
  const active = async (id: string, index = 0): Promise<Body> =>
    (await health(id))[index]!.nodes.find(({ source }: Body) => source === 'active');
  const becomes = (id: string, more: object, index = 0) =>
    eventually(
      async () => {
        const entry = await active(id, index);
        return Object.entries(more).every(([key, value]) => entry[key] === value) && entry;
      },
      { what: `${JSON.stringify(more)} of ${id}`, everyMs: 200 },
    );
  const names = async () =>
    new Set(await Promise.all(Array.from({ length: 20 }, async () => (await ask('both.example')).body)));

  await eventually(() => a.checks.length > 0 && b.checks.length > 0);
  t.is(a.checks[0]!.host, 'check.example');
  t.regex(a.checks[0]!.agent, /^svc-node-healthcheck\//);
  t.like(await active(both), { healthy: true, lastError: null });

  // Requests of visitors are counted, checks are not.
  await ask('both.example');
  await eventually(async () => {
    const told = (await health(both)).flatMap(({ traffic }) => traffic ?? []);
    return told.length > 0 && told.every(({ p95Ms, failures }) => p95Ms > 0 && failures.length === 0);
  });
  t.is((await health(refused))[0]!.traffic, null);

  // Checks fail while visitors would still be served.
  a.status = 500;
  t.like(await becomes(both, { healthy: false }), {
    lastErrorCode: 'upstream_status',
    lastErrorParams: { status: 500 },
    checkIntervalSeconds: null,
  });
  t.deepEqual(await names(), new Set(['b']));
  // One check for both sites, and the only origin of a site is never taken out.
  await becomes(shares, { healthy: false });
  t.is((await ask('shares.example')).body, 'a');
  t.is((await active(both, 1)).healthy, true);

  a.status = 200;
  await becomes(both, { healthy: true });
  await becomes(shares, { healthy: true });
  t.true((await names()).has('a'));

  a.hangs = true;
  t.like(await becomes(both, { healthy: false }), { lastErrorCode: 'timeout' });
  a.stop();
  t.like(await becomes(both, { lastErrorCode: 'connect_failed' }), { healthy: false });
  t.deepEqual(await names(), new Set(['b']));

  // Intervals are never shorter than 4.5 s, so that two checks in the place of one would be more.
  const [{ at: begun }, { at: ended }] = [a.checks[0]!, a.checks.at(-1)!];
  t.true(a.checks.length <= (ended - begun) / 4500 + 2, `${a.checks.length} checks in ${ended - begun} ms`);

  t.like(await becomes(refused, { healthy: false }), {
    lastErrorCode: 'address_forbidden',
    lastErrorParams: { address: '127.0.0.2' },
  });
  t.is(forbidden.connections, 0);

  await api.ok('PATCH', `/sites/${both}`, { originSettings: { activeHealthCheck: { enabled: false } } });
  await eventually(async () => (await health(both))[0]!.nodes.every(({ source }: Body) => source === 'passive'));
});
