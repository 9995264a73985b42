// Disk space of the cache, of clusters and nodes: what is taken and kept, and what nodes get of it.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { CacheZoneSchema, NodeCacheSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let path: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('zoned');
  path = `/clusters/${clusterId}/cache`;
});
test.after.always('stop', () => running?.stop());

const zone = async () => {
  const body = await api.entry(clusterId, 'cache-zone', '');
  return body && fromBinary(CacheZoneSchema, body);
};
const sizeOf = async (id: string) => {
  const body = await api.entry(clusterId, 'node-cache', id);
  return body && fromBinary(NodeCacheSchema, body).maxSizeGb;
};

test.serial('10 GiB and 7 days are the default and need no entry', async (t) => {
  t.deepEqual(await api.ok('GET', path), { maxSizeGb: 10, inactiveDays: 7, unsupportedNodes: [] });
  t.like(await api.ok('PUT', path, {}), { maxSizeGb: 10, inactiveDays: 7, revision: null });
  t.is(await zone(), undefined);
  t.like(await api.ok('GET', `/clusters/${clusterId}`), { cache: { maxSizeGb: 10, inactiveDays: 7 } });
});

test.serial('another zone is published and audited; the same once more changes nothing', async (t) => {
  const settings = { maxSizeGb: 65_536, inactiveDays: 90 };
  t.truthy((await api.ok('PUT', path, settings)).revision);
  t.like(await zone(), settings);
  t.is((await api.ok('PUT', path, settings)).revision, null);
  t.like(await api.ok('GET', `/clusters/${clusterId}`), { cache: settings });
  const [audit] = (await api.audit(clusterId)).filter(({ action }) => action === 'cluster.cache_update');
  t.deepEqual(audit!.metadata.after, settings);
  const live = { cluster_id: clusterId, kind: 'cache-zone', to_revision: null };
  t.deepEqual((await api.sql('config_entry').where(live).first()).features, ['cache-zone-v1']);
});

test.serial('a node has a size of its own until it follows its cluster again', async (t) => {
  const id = await api.node(clusterId, 'large', { features: ['bans-v1'] });
  const own = `/nodes/${id}/cache`;
  t.like(await api.ok('GET', path), { unsupportedNodes: [{ id, name: 'large' }] });
  t.like(await api.ok('GET', `/nodes/${id}`), { cache: { maxSizeGb: null, usage: null } });
  t.truthy((await api.ok('PUT', own, { maxSizeGb: 40 })).revision);
  t.deepEqual(await api.ok('GET', own), { maxSizeGb: 40, clusterMaxSizeGb: 65_536 });
  t.is(await sizeOf(id), 40);
  t.like(await api.ok('GET', `/nodes/${id}`), { cache: { maxSizeGb: 40, usage: null } });
  t.is((await api.ok('PUT', own, { maxSizeGb: 40 })).revision, null);
  const [audit] = (await api.audit(id)).filter(({ action }) => action === 'node.cache_update');
  t.like(audit!.metadata, { before: null, after: 40 });
  t.truthy((await api.ok('PUT', own, { maxSizeGb: null })).revision);
  t.is(await sizeOf(id), undefined);
});

test.serial('the usage of a cluster is the sum of its active nodes that reported one', async (t) => {
  const other = await api.cluster('used');
  const usage = () => api.ok('GET', `/clusters/${other}/cache/usage`);
  t.deepEqual(await usage(), { usedBytes: 0, maxBytes: 0, nodes: 0 });
  for (const [name, status] of [
    ['one', 'active'],
    ['two', 'active'],
    ['off', 'disabled'],
    ['silent', 'active'],
  ] as const) {
    const id = await api.node(other, name, { status });
    if (name === 'silent') continue;
    const measured = { usedBytes: 2 ** 40, maxBytes: 2 ** 41, measuredAt: '2026-01-02T03:04:05.000Z' };
    await api.sql('node_state').where({ node_id: id }).update({ cache_usage: measured });
  }
  t.deepEqual(await usage(), { usedBytes: 2 ** 41, maxBytes: 2 ** 42, nodes: 2 });
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/clusters/nobody/cache/usage');
});

test.serial('the size of a node ends with the node', async (t) => {
  const id = await api.node(clusterId, 'short-lived');
  await api.ok('PUT', `/nodes/${id}/cache`, { maxSizeGb: 1 });
  t.is(await sizeOf(id), 1);
  await api.ok('DELETE', `/nodes/${id}`);
  t.is(await sizeOf(id), undefined);
  t.deepEqual((await api.reasons(clusterId)).slice(-1), ['node_cache_updated']);
});

test.serial('what no zone can be is refused and changes nothing', async (t) => {
  const before = await api.ok('GET', path);
  for (const [field, value] of [
    ['maxSizeGb', 0],
    ['maxSizeGb', 65_537],
    ['maxSizeGb', 1.5],
    ['maxSizeGb', null],
    ['inactiveDays', 0],
    ['inactiveDays', 91],
    ['unknown', 1],
  ] as const) {
    const { status, body } = await api.call('PUT', path, { [field]: value });
    t.is(status, 400, field);
    t.true(JSON.stringify(body).includes(`/${field}`), JSON.stringify(body));
  }
  t.deepEqual(await api.ok('GET', path), before);
  const id = await api.node(clusterId, 'refused');
  for (const maxSizeGb of [0, 65_537, '1', undefined]) {
    t.is((await api.call('PUT', `/nodes/${id}/cache`, { maxSizeGb })).status, 400, String(maxSizeGb));
  }
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/clusters/nobody/cache');
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'PUT', '/clusters/nobody/cache', {});
  await api.refused(t, [404, 'NODE_NOT_FOUND'], 'GET', '/nodes/nobody/cache');
  await api.refused(t, [404, 'NODE_NOT_FOUND'], 'PUT', '/nodes/nobody/cache', { maxSizeGb: null });
});
