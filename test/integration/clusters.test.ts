import test from 'ava';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

const MISSING = '01a00000-0000-7000-8000-000000000000';

test('every procedure needs credentials', async (t) => {
  for (const path of ['/clusters', '/node-groups', '/regions', '/nodes']) {
    const answer = await running.client.request('GET', `/api/v1${path}`);
    t.is(answer.status, 401, path);
  }
});

test('a cluster is created with its default group, its first revision and an audit entry', async (t) => {
  const cluster = await api.ok('POST', '/clusters', { name: 'created', description: 'first' });
  t.like(cluster, {
    name: 'created',
    description: 'first',
    nodeCount: 0,
    onlineNodeCount: 0,
    liveNodeCount: 0,
    appliedNodeCount: 0,
    siteCount: 0,
    latestRevision: '1',
    clientIpMode: 'direct',
  });
  t.deepEqual(await api.ok('GET', `/clusters/${cluster.id}`), cluster);
  t.deepEqual(await api.reasons(cluster.id), ['cluster_created']);
  const { items } = await api.ok('GET', `/node-groups?clusterId=${cluster.id}`);
  t.is(items.length, 1);
  t.like(items[0], { name: 'default', isDefault: true, isCanary: false, regionId: null, nodeCount: 0 });
  t.deepEqual(
    (await api.audit(cluster.id)).map(({ action }) => action),
    ['cluster.create'],
  );
});

test('names of clusters: form, length, uniqueness', async (t) => {
  for (const name of ['', '-a', 'A', 'a_b', 'a b', 'a'.repeat(65), 'é']) {
    await api.badField(t, '/name', 'POST', '/clusters', { name });
  }
  await api.ok('POST', '/clusters', { name: `0${'a'.repeat(63)}` });
  await api.ok('POST', '/clusters', { name: 'taken' });
  t.deepEqual(await api.refused(t, [409, 'CLUSTER_NAME_TAKEN'], 'POST', '/clusters', { name: 'taken' }), {
    name: 'taken',
  });
  await api.badField(t, '/description', 'POST', '/clusters', { name: 'b', description: 'd'.repeat(501) });
  await api.badField(t, '/nodes', 'POST', '/clusters', { name: 'b', nodes: 3 });
});

test('an update changes what it names, and only on the version it was made for', async (t) => {
  const cluster = await api.ok('POST', '/clusters', { name: 'updated' });
  const path = `/clusters/${cluster.id}`;
  const changed = await api.ok('PATCH', path, { description: 'x', expectedUpdatedAt: cluster.updatedAt });
  t.like(changed, { name: 'updated', description: 'x' });
  const data = await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', path, {
    name: 'other',
    expectedUpdatedAt: cluster.updatedAt,
  });
  t.is(data.updatedAt, changed.updatedAt);
  t.deepEqual(await api.ok('PATCH', path, {}), changed);
  t.deepEqual(
    (await api.audit(cluster.id)).map(({ action }) => action),
    ['cluster.create', 'cluster.update'],
  );
  await api.ok('POST', '/clusters', { name: 'occupied' });
  await api.refused(t, [409, 'CLUSTER_NAME_TAKEN'], 'PATCH', path, { name: 'occupied' });
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'PATCH', `/clusters/${MISSING}`, { name: 'x' });
});

test('only an empty cluster is deleted, with everything of it', async (t) => {
  const id = await api.cluster('deleted');
  const site = await api.site(id, 'deleted.example');
  const node = await api.node(id, 'n');
  const data = await api.refused(t, [409, 'CLUSTER_NOT_EMPTY'], 'DELETE', `/clusters/${id}`);
  t.deepEqual(data, { nodes: 1, sites: 1 });
  await api.ok('DELETE', `/nodes/${node}`);
  await api.ok('DELETE', `/sites/${site.id}`);
  await api.ok('DELETE', `/clusters/${id}`);
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', `/clusters/${id}`);
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'DELETE', `/clusters/${id}`);
  t.is((await api.sql('cluster_head').where({ cluster_id: id })).length, 0);
  t.true((await api.audit(id)).some(({ action }) => action === 'cluster.delete'));
});

// Serial: other tests create clusters between its requests.
test.serial('clusters are listed by name in pages with their counts', async (t) => {
  const id = await api.cluster('counted');
  await api.site(id, 'counted.example');
  await api.node(id, 'online');
  await api.node(id, 'offline', { online: false });
  await api.node(id, 'disabled', { status: 'disabled' });
  const { items, total } = await api.ok('GET', '/clusters?pageSize=100');
  t.is(items.length, total);
  const names = items.map((item: { name: string }) => item.name);
  t.deepEqual(names, names.toSorted());
  t.like(
    items.find((item: { id: string }) => item.id === id),
    { nodeCount: 3, onlineNodeCount: 2, liveNodeCount: 1, appliedNodeCount: 0, siteCount: 1 },
  );
  const second = await api.ok('GET', '/clusters?page=2&pageSize=1');
  t.is(second.items[0].id, items[1].id);
  for (const query of ['pageSize=0', 'pageSize=101', 'page=0', 'page=x', 'other=1']) {
    t.is((await api.call('GET', `/clusters?${query}`)).status, 400, query);
  }
});

test('node groups: create, change, delete; names are unique in the cluster', async (t) => {
  const clusterId = await api.cluster('grouped');
  const region = await api.ok('POST', '/regions', { name: 'Europe', code: 'eu' });
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'edge', regionId: region.id });
  t.like(group, { clusterId, name: 'edge', isDefault: false, regionName: 'Europe', regionCode: 'eu', nodeCount: 0 });
  await api.refused(t, [409, 'NODE_GROUP_NAME_TAKEN'], 'POST', '/node-groups', { clusterId, name: 'edge' });
  await api.ok('POST', '/node-groups', { clusterId: await api.cluster('grouped-too'), name: 'edge' });
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'POST', '/node-groups', { clusterId: MISSING, name: 'x' });
  const orphan = { clusterId, name: 'x', regionId: MISSING };
  await api.refused(t, [404, 'REGION_NOT_FOUND'], 'POST', '/node-groups', orphan);
  await api.badField(t, '/name', 'POST', '/node-groups', { clusterId, name: ' edge' });
  const path = `/node-groups/${group.id}`;
  const changed = await api.ok('PATCH', path, { isCanary: true, regionId: null, expectedUpdatedAt: group.updatedAt });
  t.like(changed, { name: 'edge', isCanary: true, canaryInEffect: false, regionId: null, regionName: null });
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', path, { name: 'y', expectedUpdatedAt: group.updatedAt });
  await api.refused(t, [409, 'NODE_GROUP_NAME_TAKEN'], 'PATCH', path, { name: 'default' });
  await api.refused(t, [404, 'REGION_NOT_FOUND'], 'PATCH', path, { regionId: MISSING });
  await api.refused(t, [404, 'NODE_GROUP_NOT_FOUND'], 'PATCH', `/node-groups/${MISSING}`, { name: 'y' });
});

test('deleting a group moves its nodes to the default group, which stays', async (t) => {
  const clusterId = await api.cluster('regrouped');
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'old' });
  const node = await api.node(clusterId, 'moved');
  await api.ok('PATCH', `/nodes/${node}`, { nodeGroupId: group.id });
  const fallback = (await api.ok('GET', `/node-groups?clusterId=${clusterId}`)).items.find(
    (item: { isDefault: boolean }) => item.isDefault,
  );
  await api.refused(t, [409, 'NODE_GROUP_IS_DEFAULT'], 'DELETE', `/node-groups/${fallback.id}`);
  await api.ok('DELETE', `/node-groups/${group.id}`);
  await api.refused(t, [404, 'NODE_GROUP_NOT_FOUND'], 'DELETE', `/node-groups/${group.id}`);
  t.is((await api.ok('GET', `/nodes/${node}`)).nodeGroupId, fallback.id);
});

test('regions: codes are unique, deleting one leaves its groups without', async (t) => {
  const region = await api.ok('POST', '/regions', { name: 'Asia', code: 'asia-1' });
  await api.refused(t, [409, 'REGION_CODE_TAKEN'], 'POST', '/regions', { name: 'Other', code: 'asia-1' });
  for (const code of ['', 'Asia', '-a', 'a'.repeat(33)]) {
    await api.badField(t, '/code', 'POST', '/regions', { name: 'x', code });
  }
  const clusterId = await api.cluster('located');
  const group = await api.ok('POST', '/node-groups', { clusterId, name: 'g', regionId: region.id });
  const path = `/regions/${region.id}`;
  const changed = await api.ok('PATCH', path, { name: 'Asia 2', expectedUpdatedAt: region.updatedAt });
  t.like(changed, { name: 'Asia 2', code: 'asia-1', nodeGroupCount: 1 });
  await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', path, { name: 'x', expectedUpdatedAt: region.updatedAt });
  await api.ok('POST', '/regions', { name: 'Other', code: 'asia-2' });
  await api.refused(t, [409, 'REGION_CODE_TAKEN'], 'PATCH', path, { code: 'asia-2' });
  await api.ok('DELETE', path);
  await api.refused(t, [404, 'REGION_NOT_FOUND'], 'DELETE', path);
  await api.refused(t, [404, 'REGION_NOT_FOUND'], 'PATCH', path, { name: 'x' });
  const { items } = await api.ok('GET', `/node-groups?clusterId=${clusterId}`);
  t.is(items.find((item: { id: string }) => item.id === group.id).regionId, null);
  const codes = (await api.ok('GET', '/regions')).items.map((item: { code: string }) => item.code);
  t.deepEqual(codes, codes.toSorted());
});

const named = (list: { items: { name: string }[] }) => list.items.map(({ name }) => name);
const found = async (list: string, search: string, more = '') => {
  const page = await api.ok('GET', `/${list}?search=${encodeURIComponent(search)}${more}`);
  return { total: page.total, names: named(page) };
};

test('clusters, regions and node groups are searched by a part of the name in any case', async (t) => {
  const clusterId = await api.cluster('search-one');
  await api.cluster('search-two');
  t.deepEqual(await found('clusters', 'SEARCH-'), { total: 2, names: ['search-one', 'search-two'] });
  t.deepEqual(await found('clusters', ' rch-t '), { total: 1, names: ['search-two'] });
  t.deepEqual(await found('clusters', 'rch-', '&pageSize=1&page=2'), { total: 2, names: ['search-two'] });
  t.deepEqual(await found('clusters', 'search-three'), { total: 0, names: [] });

  for (const [name, code] of [
    ['Île Sought', 'sought-1'],
    ['Elsewhere', 'sought-2'],
  ])
    await api.ok('POST', '/regions', { name, code });
  t.deepEqual(await found('regions', 'ÎLE s'), { total: 1, names: ['Île Sought'] });
  t.deepEqual(await found('regions', 'SOUGHT-'), { total: 2, names: ['Île Sought', 'Elsewhere'] });

  const elsewhere = await api.cluster('searched-elsewhere');
  await api.ok('POST', '/node-groups', { clusterId, name: 'Sought' });
  await api.ok('POST', '/node-groups', { clusterId: elsewhere, name: 'Sought too' });
  t.deepEqual(await found('node-groups', 'sought'), { total: 2, names: ['Sought', 'Sought too'] });
  t.deepEqual(await found('node-groups', 'sought', `&clusterId=${elsewhere}`), { total: 1, names: ['Sought too'] });
  t.deepEqual(await found('node-groups', '', `&clusterId=${clusterId}`), { total: 2, names: ['Sought', 'default'] });
});

test('signs that stand for others in a pattern are looked for as they are', async (t) => {
  const clusterId = await api.cluster('patterns');
  const names = ['100% \\ sure', '100x of them', 'under_line', 'underxline'];
  for (const name of names) await api.ok('POST', '/node-groups', { clusterId, name });
  const groups = async (search: string) => (await found('node-groups', search, `&clusterId=${clusterId}`)).names;
  t.deepEqual(await groups('100%'), ['100% \\ sure']);
  t.deepEqual(await groups('r_l'), ['under_line']);
  t.deepEqual(await groups('\\'), ['100% \\ sure']);
  t.deepEqual(await groups('%'), ['100% \\ sure']);
  t.is((await found('clusters', '%')).total, 0);
  await api.ok('POST', '/regions', { name: 'a_b%', code: 'patterns' });
  t.deepEqual((await found('regions', '_b%')).names, ['a_b%']);
});

test('a text that is searched for has at most 100 characters and no control characters', async (t) => {
  for (const list of ['clusters', 'regions', 'node-groups']) {
    t.is((await found(list, 'é'.repeat(100))).total, 0, list);
    for (const search of ['a'.repeat(101), 'a\u0001', 'a\n']) {
      await api.badField(t, '/search', 'GET', `/${list}?search=${encodeURIComponent(search)}`);
    }
  }
});
