// DNS of clusters: names follow healthy nodes at a real server (BIND), never become empty, and nothing foreign is touched.
import test from 'ava';
import { BindServer } from '../helpers/bind-server.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const ZONE = 'dns.test';
let running: TestConsole;
let api: Api;
let bind: BindServer;
let access: string;

test.before('start', async () => {
  bind = await BindServer.start(ZONE, ['www A 198.51.100.7', 'eu.cdn TXT "a note of somebody"']);
  running = await startTestConsole({ env: { SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' } });
  api = new Api(running);
  const made = { name: 'bind', provider: 'rfc2136', zone: ZONE, credentials: bind.credentials };
  access = (await api.ok('POST', '/dns/providers', made)).id;
  beats = setInterval(() => {
    for (const [node, position] of beating) node.beat(position).catch(() => undefined);
  }, 5_000);
});
test.after.always('stop', async () => {
  clearInterval(beats);
  await running?.stop();
  await bind?.stop();
});

let clusters = 0;
/** Nodes that send heartbeats, with where they are. */
const beating = new Map<ReportingNode, Body>();
let beats: NodeJS.Timeout;

interface Managed {
  id: string;
  groupId: string;
  domain: string;
  /** Below the zone. */
  label: string;
  nodes: ReportingNode[];
  put(more?: Body): Promise<Body>;
  get(): Promise<Body>;
}

/** A cluster with nodes that are at 203.0.113.N1, … */
async function managed(nodes: number): Promise<Managed> {
  const label = `c${++clusters}`;
  const { id } = await api.ok('POST', '/clusters', { name: `dns-${label}` });
  const groupId = (await api.ok('GET', `/node-groups?clusterId=${id}`)).items[0].id;
  const made: ReportingNode[] = [];
  for (let number = 1; number <= nodes; number++) {
    const node = await ReportingNode.enroll(running, id);
    made.push(node);
    const addresses = [{ address: `203.0.113.${clusters * 10 + number}`, level: 0 }];
    await api.ok('PUT', `/nodes/${node.id}/addresses`, { addresses });
    await healthy(node);
  }
  const domain = `${label}.${ZONE}`;
  const lines = [{ name: 'eu', nodeGroupId: groupId }];
  const settings = { mode: 'auto', providerId: access, domain, ttl: 60, lines };
  return {
    id,
    groupId,
    domain,
    label,
    nodes: made,
    put: (more = {}) => api.ok('PUT', `/clusters/${id}/dns`, { ...settings, ...more }),
    get: () => api.ok('GET', `/clusters/${id}/dns`),
  };
}

/** The node runs its target, and nothing of that changes by itself. */
async function healthy(node: ReportingNode): Promise<void> {
  const position = await node.onTarget();
  await node.beat(position);
  beating.set(node, position);
  await eventually(
    async () => {
      const { applyState, online, dataPlaneHealthy } = await api.ok('GET', `/nodes/${node.id}`);
      return applyState === 'applied' && online && dataPlaneHealthy;
    },
    { what: 'healthy node' },
  );
}

/** Its last heartbeat was a minute ago. */
async function silence(node: ReportingNode): Promise<void> {
  beating.delete(node);
  // A heartbeat that is on its way ends before.
  await node.beat({ dataPlaneHealthy: false });
  await node.fallSilent();
}

const answer = (label: string, wanted: string[], type: 'A' | 'CNAME' = 'A') =>
  eventually(async () => `${await bind.answers(label, type)}` === `${wanted}`, {
    what: `${label} ${type} ${wanted}`,
    timeoutMs: 30_000,
  });
const address = (cluster: number, node: number) => `203.0.113.${cluster * 10 + node}`;

test.serial('a test reads the zone, and says what is wrong otherwise', async (t) => {
  const { ok, records } = await api.ok('POST', '/dns/test', { id: access });
  t.true(ok);
  t.true(records >= 4);
  const wrong = { ...bind.credentials, tsig_secret: 'd3Jvbmcgd3Jvbmcgd3Jvbmc=' };
  const given = { provider: 'rfc2136', zone: ZONE, credentials: wrong };
  await api.refused(t, [400, 'DNS_PROVIDER_AUTH_FAILED'], 'POST', '/dns/test', given);
  await api.refused(t, [400, 'DNS_ZONES_UNSUPPORTED'], 'POST', '/dns/zones', { id: access });
  const { items } = await api.ok('GET', '/dns/providers');
  t.false(JSON.stringify(items).includes(bind.key.secret));
  const catalog = await api.ok('GET', '/dns/catalog');
  t.true(catalog.some((one: Body) => one.id === 'rfc2136' && Array.isArray(one.capabilities.lines)));
});

test.serial('names follow nodes: a silent one goes and comes back, and the last one stays', async (t) => {
  const cluster = await managed(2);
  const number = clusters;
  const [first, second] = [address(number, 1), address(number, 2)];
  const { revision } = await cluster.put();
  t.is(revision, '1');
  await answer(`all.${cluster.label}`, [first, second]);
  await answer(`eu.${cluster.label}`, [first, second]);
  await eventually(async () => (await cluster.get()).applied === revision, { what: 'applied' });

  await silence(cluster.nodes[0]!);
  await answer(`all.${cluster.label}`, [second]);
  const { items } = await api.ok('GET', `/clusters/${cluster.id}/dns/revisions`);
  t.is(items[0].reason, 'health');
  t.deepEqual(items[0].reasonParams, {});

  // The last one: nothing is removed, and somebody is told.
  await silence(cluster.nodes[1]!);
  const held = await eventually(async () => (await cluster.get()).blocked ?? undefined, { what: 'blocked' });
  t.true(held.removedRecords > 0);
  t.true(held.difference.length > 0);
  t.deepEqual(await bind.answers(`all.${cluster.label}`), [second]);
  const { attention } = await api.ok('GET', '/overview');
  t.true(attention.some((one: Body) => one.kind === 'dns_blocked' && one.clusterId === cluster.id));

  // It comes back: what was held ends by itself.
  for (const node of cluster.nodes) await healthy(node);
  await answer(`all.${cluster.label}`, [first, second]);
  t.is((await cluster.get()).blocked, null);
});

test.serial('a held change is published by force, and by that alone', async (t) => {
  const cluster = await managed(1);
  const own = address(clusters, 1);
  await cluster.put();
  await answer(`all.${cluster.label}`, [own]);
  await silence(cluster.nodes[0]!);
  const { revision } = await eventually(async () => (await cluster.get()).blocked ?? undefined, { what: 'blocked' });
  const path = `/clusters/${cluster.id}/dns/force-publish`;
  await api.refused(t, [409, 'DNS_NOT_BLOCKED'], 'POST', path, { revision: '1' });
  await api.ok('POST', path, { revision });
  await answer(`all.${cluster.label}`, []);
  t.is((await api.ok('GET', `/clusters/${cluster.id}/dns/revisions`)).items[0].reason, 'force');
});

test.serial('sites have names that lead to all nodes; they go with the site', async (t) => {
  const cluster = await managed(1);
  await cluster.put({ lineAliases: true });
  const origins = [{ scheme: 'http', address: 'origin.example.org', port: 80 }];
  const { site } = await api.ok('POST', '/sites', {
    clusterId: cluster.id,
    name: 'named',
    domains: [`www.${cluster.label}.example.org`],
    origins,
  });
  await answer(`${site.id}.${cluster.label}`, [`all.${cluster.domain}`], 'CNAME');
  await answer(`eu.${site.id}.${cluster.label}`, [`eu.${cluster.domain}`], 'CNAME');
  const target = await eventually(
    async () => {
      const found = await api.ok('GET', `/sites/${site.id}/cname`);
      return found.published ? found : undefined;
    },
    { what: 'published' },
  );
  t.is(target.target, `${site.id}.${cluster.domain}`);
  t.deepEqual(target.lines, [{ name: 'eu', target: `eu.${site.id}.${cluster.domain}` }]);
  const { zoneFile } = await api.ok('GET', `/clusters/${cluster.id}/dns/export`);
  t.true(zoneFile.includes(`${site.id} 60 IN CNAME all.${cluster.domain}.`));
  await api.ok('DELETE', `/sites/${site.id}`);
  await answer(`${site.id}.${cluster.label}`, [], 'CNAME');
});

test.serial('what others have in the zone stays: beside, at a wanted name, and after all is removed', async (t) => {
  const cluster = await managed(1);
  const own = address(clusters, 1);
  // `www` has an address that is not ours.
  await cluster.put({ domain: ZONE, lines: [{ name: 'www', nodeGroupId: cluster.groupId }] });
  await answer('all', [own]);
  const state = await eventually(
    async () => {
      const found = await cluster.get();
      return found.problem ? found : undefined;
    },
    { what: 'conflict' },
  );
  t.is(state.problem.code, 'DNS_RECORD_CONFLICT');
  t.deepEqual(state.conflicts, [`www.${ZONE}`]);
  t.deepEqual(await bind.answers('www'), ['198.51.100.7']);
  const { attention } = await api.ok('GET', '/overview');
  t.true(attention.some((one: Body) => one.kind === 'dns_failed' && one.clusterId === cluster.id));
  await api.refused(t, [409, 'DNS_PROVIDER_IN_USE'], 'DELETE', `/dns/providers/${access}`);
  await api.ok('PUT', `/clusters/${cluster.id}/dns`, {});
  await answer('all', []);
  t.deepEqual(await bind.answers('www'), ['198.51.100.7']);
  t.deepEqual(await bind.answers('eu.cdn', 'TXT'), ['a note of somebody']);
});

test.serial('a server that is away is a problem that ends by itself; hand edits are repaired', async (t) => {
  const cluster = await managed(2);
  const number = clusters;
  await cluster.put();
  await answer(`all.${cluster.label}`, [address(number, 1), address(number, 2)]);
  await bind.pause();
  await silence(cluster.nodes[0]!);
  const { problem } = await eventually(
    async () => {
      const found = await cluster.get();
      return found.problem ? found : undefined;
    },
    { what: 'problem', timeoutMs: 30_000 },
  );
  t.is(problem.code, 'DNS_PROVIDER_UNREACHABLE');
  await bind.resume();
  // The run that met nobody may still be at it.
  await eventually(async () => (await api.call('POST', '/dns/reconcile', { clusterId: cluster.id })).status === 200, {
    what: 'run',
  });
  t.deepEqual(await bind.answers(`all.${cluster.label}`), [address(number, 2)]);
  t.is((await cluster.get()).problem, null);
});

test.serial('levels: the primary addresses alone are in DNS; a node without any address is named', async (t) => {
  const cluster = await managed(1);
  const node = cluster.nodes[0]!;
  const own = address(clusters, 1);
  await cluster.put();
  const path = `/nodes/${node.id}/addresses`;
  const levels = [
    { address: own, level: 0 },
    { address: '203.0.113.201', level: 0 },
    { address: '203.0.113.202', level: 1 },
    { address: '2001:db8::7', level: 0 },
  ];
  const presented = await api.ok('PUT', path, { addresses: levels });
  t.is(presented.schedulingLevel, 0);
  t.deepEqual(presented.schedulingAddresses, [
    { address: own, level: 0, source: 'configured', reachable: true },
    { address: '203.0.113.201', level: 0, source: 'configured', reachable: true },
    { address: '2001:db8::7', level: 0, source: 'configured', reachable: true },
    { address: '203.0.113.202', level: 1, source: 'configured', reachable: true },
  ]);
  await answer(`all.${cluster.label}`, ['203.0.113.201', own]);
  t.is((await api.ok('GET', `/clusters/${cluster.id}/dns/revisions`)).items[0].reason, 'manual');
  for (const bad of ['10.0.0.0/8', '224.0.0.1', '127.0.0.1', 'node.example.org', '0.0.0.0']) {
    const data = await api.refused(t, [400, 'NODE_ADDRESS_INVALID'], 'PUT', path, {
      addresses: [{ address: bad, level: 0 }],
    });
    t.deepEqual(data, { address: bad, path: '/addresses/0/address' });
  }
  const twice = [levels[0], levels[0]];
  await api.refused(t, [400, 'NODE_ADDRESS_INVALID'], 'PUT', path, { addresses: twice });
  await api.refused(t, [400, 'BAD_REQUEST'], 'PUT', path, { addresses: [{ address: own, level: 1 }] });
  t.is((await api.ok('PUT', path, { addresses: [] })).dnsIssue, 'no_public_address');
  const { attention } = await api.ok('GET', '/overview');
  t.true(attention.some((one: Body) => one.kind === 'nodes_no_address' && one.clusterId === cluster.id));
});

test.serial('settings that cannot be are refused by name', async (t) => {
  const cluster = await managed(0);
  const other = await managed(0);
  const path = `/clusters/${cluster.id}/dns`;
  const line = { name: 'eu', nodeGroupId: cluster.groupId };
  const auto = { mode: 'auto', providerId: access, domain: `shared.${ZONE}`, lines: [line] };
  const put = (body: Body) => ['PUT', path, { ...auto, ...body }] as const;
  await api.refused(t, [400, 'DNS_ZONE_MISMATCH'], ...put({ domain: 'cdn.elsewhere.test' }));
  const data = await api.refused(
    t,
    [400, 'DNS_LINE_UNSUPPORTED'],
    ...put({ lines: [{ ...line, resolutionLine: 'telecom' }] }),
  );
  t.is(data.line, 'telecom');
  await api.refused(t, [404, 'DNS_PROVIDER_NOT_FOUND'], ...put({ providerId: 'none' }));
  await api.refused(t, [404, 'NODE_GROUP_NOT_FOUND'], ...put({ lines: [{ ...line, nodeGroupId: other.groupId }] }));
  await api.refused(t, [400, 'DNS_POLICY_INVALID'], ...put({ lines: [line, { ...line, name: 'us' }] }));
  await api.refused(t, [400, 'BAD_REQUEST'], ...put({ lines: [{ ...line, name: 'all' }] }));
  await api.refused(t, [400, 'BAD_REQUEST'], ...put({ providerId: null }));
  await api.ok('PUT', path, auto);
  const theirs = { ...auto, lines: [{ name: 'eu', nodeGroupId: other.groupId }] };
  const taken = await api.refused(t, [409, 'DNS_BINDING_CONFLICT'], 'PUT', `/clusters/${other.id}/dns`, theirs);
  t.is(taken.name, `eu.shared.${ZONE}`);
  await api.ok('PUT', `/clusters/${other.id}/dns`, { ...theirs, lines: [{ name: 'us', nodeGroupId: other.groupId }] });
  t.is((await api.ok('GET', `/clusters/${other.id}/dns`)).binding.allLabel, 'all-2');
  await api.refused(t, [409, 'DNS_BINDING_IN_USE'], 'DELETE', `/clusters/${cluster.id}`);
  await api.refused(t, [404, 'DNS_REVISION_NOT_FOUND'], 'POST', `${path}/revisions/99/rollback`, {});
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/clusters/none/dns');
});

test.serial('manual mode says which records are needed, writes none, and leaves those of before', async (t) => {
  const cluster = await managed(2);
  const number = clusters;
  await cluster.put();
  await answer(`all.${cluster.label}`, [address(number, 1), address(number, 2)]);
  await silence(cluster.nodes[0]!);
  await answer(`all.${cluster.label}`, [address(number, 2)]);
  await cluster.put({ mode: 'manual' });
  const { records, binding } = await cluster.get();
  t.is(binding.mode, 'manual');
  const all = records.filter((one: Body) => one.owner === 'all');
  t.deepEqual(
    all.map(({ data, healthy: up }: Body) => [data, up]),
    [
      [address(number, 1), false],
      [address(number, 2), true],
    ],
  );
  t.deepEqual(await bind.answers(`all.${cluster.label}`), [address(number, 2)]);
  // Back by a rollback to the first revision, with the addresses of now.
  const { revision } = await api.ok('POST', `/clusters/${cluster.id}/dns/revisions/1/rollback`, {});
  t.truthy(revision);
  t.is((await cluster.get()).binding.mode, 'auto');
  await api.ok('PUT', `/clusters/${cluster.id}/dns`, {});
  await answer(`all.${cluster.label}`, []);
});

test.serial('a backup group takes over, and gives back', async (t) => {
  const cluster = await managed(1);
  const number = clusters;
  const backup = await api.ok('POST', '/node-groups', { clusterId: cluster.id, name: 'backup' });
  const spare = await ReportingNode.enroll(running, cluster.id);
  await api.ok('PATCH', `/nodes/${spare.id}`, { nodeGroupId: backup.id });
  await api.ok('PUT', `/nodes/${spare.id}/addresses`, { addresses: [{ address: '203.0.113.250', level: 0 }] });
  await healthy(spare);
  await cluster.put({ lines: [{ name: 'eu', nodeGroupId: cluster.groupId, backupNodeGroupIds: [backup.id] }] });
  await answer(`all.${cluster.label}`, [address(number, 1)]);
  await silence(cluster.nodes[0]!);
  await answer(`all.${cluster.label}`, ['203.0.113.250']);
  await healthy(cluster.nodes[0]!);
  await answer(`all.${cluster.label}`, [address(number, 1)]);
  const { lines } = await api.refused(t, [409, 'DNS_BINDING_IN_USE'], 'DELETE', `/node-groups/${backup.id}`);
  t.deepEqual(lines, ['eu']);
});
