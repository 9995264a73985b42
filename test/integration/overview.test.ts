// The overview: what an empty console says, what needs somebody beside the nodes themselves, and in which order.
import test from 'ava';
import { ATTENTION_KINDS } from '../../contract/resources/overview.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Overview } from '../helpers/overview.ts';
import { type ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let overview: Overview;
let clusterId: string;
let siteId: string;
let node: ReportingNode;

test.before('start', async () => {
  // Whatever listens on the default port of this machine is no node channel of this console.
  running = await startTestConsole({ env: { SVC_NODE_API_URL: 'https://console.invalid:8443' } });
  api = new Api(running);
  overview = new Overview(api);
});
test.after.always('stop', async () => {
  node?.stop();
  await running?.stop();
});

test.serial('a console in which nothing is yet says so: no attention, no data, no guesses', async (t) => {
  const answer = await overview.get();
  t.like(answer, {
    attention: [],
    attentionTotal: 0,
    clusters: 1,
    nodes: 0,
    onlineNodes: 0,
    sites: 0,
    siteStates: { live: 0, partial: 0, pending: 0, unserved: 0, unknown: 0, disabled: 0 },
    traffic: null,
    bans: { manual: 0, automatic: 0 },
  });
  t.is(answer.propagation.config.recent, null);
  t.deepEqual(answer.propagation.bans, { latest: null, recent: null });
  t.deepEqual(await api.ok('GET', '/overview/traffic'), { from: null, requestsPerSecond: [] });
  await api.badField(t, '/hours', 'GET', '/overview/traffic?hours=25');
  await api.badField(t, '/hours', 'GET', '/overview/traffic?hours=0');
});

test.serial('an operator, by key or session, may ask; nobody else', async (t) => {
  const { client } = running;
  t.is((await client.request('GET', '/api/v1/overview')).status, 401);
  const viewed = await client.rpc<Body>('overview.get', {});
  t.deepEqual(viewed.attention, []);
});

test.serial('a node that does what it should needs nobody', async (t) => {
  ({ clusterId, siteId, node } = await servedSite(running, api));
  const answer = await eventually(async () => {
    const now = await overview.get();
    return now.nodeStates.ok === 1 && now.siteStates.live === 1 && now;
  });
  t.like(answer, { attention: [], attentionTotal: 0, clusters: 2, nodes: 1, onlineNodes: 1, sites: 1 });
  t.is(answer.revisions[0].clusterId, clusterId);
  t.is(answer.revisions[0].reasonCode, 'site_created');
});

test.serial('sites above normal are counted by cluster, and Under Attack that was left on is named', async (t) => {
  await node.connection.call('reportSecurity', { sites: [{ siteId, level: 2, paths: [] }], hasState: true });
  const item = await overview.shown('sites_above_normal');
  t.like(item, { level: 'watch', clusterId, count: 1 });
  t.like(item.named[0], { type: 'site', id: siteId, reason: 'js' });
  await node.connection.call('reportSecurity', { sites: [{ siteId, level: 4, paths: [] }], hasState: true });
  await overview.shown('sites_above_normal', ({ level }) => level === 'act');
  await node.connection.call('reportSecurity', { sites: [], hasState: true });
  await overview.gone('sites_above_normal');

  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: true });
  t.like(await overview.shown('sites_under_attack'), { level: 'watch', count: 1, clusterId: null, clusterName: '' });
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: false });
  await overview.gone('sites_under_attack');

  await api.ok('PUT', '/settings/protection', { underAttack: true });
  t.like(await overview.shown('under_attack_on'), { level: 'watch', count: 0, named: [] });
  await api.ok('PUT', '/settings/protection', { underAttack: false });
  await overview.gone('under_attack_on');
});

test.serial('a site tells whose Under Attack is on, and who changed it last', async (t) => {
  const standing = () => api.ok('GET', `/sites/${siteId}/standing`);
  t.is((await standing()).underAttack, null);
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: true });
  const own = await standing();
  t.is(own.underAttack, 'site');
  const [last] = (await api.ok('GET', `/audit-logs?targetType=site&targetId=${siteId}`)).items;
  t.is(last.action, 'site.protection_update');
  t.deepEqual(own.lastChange, {
    at: last.occurredAt,
    action: last.action,
    actorType: last.actorType,
    actorName: last.actorName,
  });
  await api.ok('PUT', '/settings/protection', { underAttack: true });
  t.is((await standing()).underAttack, 'platform');
  await api.ok('PUT', '/settings/protection', { underAttack: false });
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: false });
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/gone/standing');
  // What was published reaches the channel, and what nodes run is read, a moment later.
  await eventually(async () => {
    await node.beat(await node.onTarget());
    return (await api.ok('GET', '/sites?state=live')).total === 1;
  });
});

test.serial('sites are listed with their level and requests, and narrowed by state and level', async (t) => {
  const listOf = async (query: string) => {
    const { items, total } = await api.ok('GET', `/sites?${query}`);
    t.is(total, items.length);
    return items.map(({ id }: Body) => id);
  };
  await node.beat(await node.onTarget());
  const other = await api.cluster('listed');
  const silent = (await api.site(other, 'silent.example')).id;
  await node.connection.call('reportSecurity', { sites: [{ siteId, level: 3, paths: [] }], hasState: true });
  const minute = new Date(Math.floor(Date.now() / 60_000 - 1) * 60_000);
  // The minute may end meanwhile; five are looked at.
  await api.sql('site_request_minute').insert({ site_id: siteId, minute, requests: 120 });
  const listed = (await api.ok('GET', '/sites')).items;
  t.like(
    listed.find(({ id }: Body) => id === siteId),
    { level: 'pow', requestsPerSecond: 2 },
  );
  // Nothing was reported of it, which is not the same as none.
  t.like(
    listed.find(({ id }: Body) => id === silent),
    { level: null, requestsPerSecond: null },
  );
  t.like(await api.ok('GET', `/sites/${siteId}/standing`), { level: 'pow', requestsPerSecond: 2 });
  t.like(await api.ok('GET', `/sites/${silent}/standing`), { level: null, requestsPerSecond: null });
  for (const level of ['pow', 'above_normal']) t.deepEqual(await listOf(`level=${level}`), [siteId]);
  for (const level of ['js', 'normal']) t.deepEqual(await listOf(`level=${level}`), []);
  await node.connection.call('reportSecurity', { sites: [], hasState: true });
  t.deepEqual(await listOf('level=normal'), [siteId]);
  t.deepEqual(await listOf('level=above_normal'), []);
  t.deepEqual(await listOf('state=unserved'), [silent]);
  t.deepEqual(await listOf(`state=live&level=normal&search=shop&clusterId=${clusterId}&sort=name`), [siteId]);
  t.deepEqual(await listOf(`state=live&clusterId=${other}`), []);
  for (const [field, accepted] of [
    ['state', 'unserved'],
    ['level', 'above_normal'],
  ] as const) {
    const data = await api.refused(t, [400, 'BAD_REQUEST'], 'GET', `/sites?${field}=unheard`);
    t.true(JSON.stringify(data.issues).includes(accepted), JSON.stringify(data.issues));
  }
  await api.sql('site_request_minute').delete();
  await api.ok('DELETE', `/sites/${silent}`);
  await api.ok('DELETE', `/clusters/${other}`);
  await node.beat(await node.onTarget());
});

test.serial('a site whose nodes are all silent is unknown, not said to be unserved', async (t) => {
  await node.fallSilent();
  await overview.shown('nodes_unhealthy');
  // What nodes run is read once a second, by the site and by the overview for themselves.
  const isUnknown = async (is: boolean) =>
    eventually(async () => (await api.ok('GET', `/sites/${siteId}`)).delivery.unknown === is);
  await isUnknown(true);
  const { attention, siteStates } = await overview.get(clusterId);
  t.false(attention.some(({ kind }: Body) => kind === 'sites_unserved'));
  t.like(siteStates, { unknown: 1, unserved: 0 });
  t.is((await api.ok('GET', '/sites?state=unknown')).total, 1);
  await node.beat(await node.onTarget());
  await overview.gone('nodes_unhealthy');
  await isUnknown(false);
});

test.serial('a site that nobody serves is an item: all failed, or all hold it', async (t) => {
  const second = (await api.site(clusterId, 'second.example')).id;
  const failed = [{ kind: 'site', id: second, running: false, reason: 'port in use' }];
  const target = await node.onTarget();
  await node.beat({ ...target, config: { ...target.config, failed } });
  const unserved = await overview.shown('sites_unserved');
  t.like(unserved, { level: 'act', clusterId, clusterName: 'hong-kong', count: 1 });
  t.deepEqual(unserved.named, [{ type: 'site', id: second, name: 'second.example', reason: 'unserved' }]);
  // Nobody misses a site that is switched off.
  await api.ok('PUT', `/sites/${second}/enabled`, { enabled: false });
  await overview.gone('sites_unserved');
  await node.beat(await node.onTarget());
  const held = (await api.site(clusterId, '.held.example')).id;
  await node.beat(await node.onTarget());
  t.like((await overview.shown('sites_unserved')).named, [{ id: held }]);
  for (const id of [second, held]) await api.ok('DELETE', `/sites/${id}`);
  await overview.gone('sites_unserved');
  await node.beat(await node.onTarget());
});

test.serial('a cluster with sites and without nodes is an item by itself', async (t) => {
  const other = await api.cluster('empty');
  const { id } = await api.site(other, 'empty.example');
  const item = await overview.shown('clusters_no_nodes');
  t.like(item, { level: 'act', clusterId: other, clusterName: 'empty', count: 1, named: [] });
  t.deepEqual(
    (await overview.get(other)).attention.map(({ kind }: Body) => kind),
    ['clusters_no_nodes'],
  );
  await api.ok('PUT', `/sites/${id}/enabled`, { enabled: false });
  await overview.gone('clusters_no_nodes');
  await api.ok('DELETE', `/sites/${id}`);
  await api.ok('DELETE', `/clusters/${other}`);
});

test.serial('a publication that was asked for and is not made is an item', async (t) => {
  const { epoch } = await api.sql('cluster_head').where({ cluster_id: clusterId }).first('epoch');
  const lock = await api.sql.transaction();
  // Who publishes for the cluster waits for its head.
  await lock('cluster_head').where({ cluster_id: clusterId, epoch }).forUpdate();
  try {
    await api.sql('publish_request').insert({
      cluster_id: clusterId,
      entries: '[]',
      reason: 'protection_settings_changed',
      actor: JSON.stringify({ type: 'system', id: null, name: 'test' }),
      created_at: new Date(Date.now() - 120_000),
    });
    t.like(await overview.shown('publications_waiting'), { level: 'act', count: 1 });
  } finally {
    await lock.rollback();
  }
  await overview.gone('publications_waiting');
});

test.serial('with nodes and none of them connected, the check of the node channel is an item', async (t) => {
  await api.ok('PUT', '/settings/node-channel', { url: 'https://console.invalid:8443' });
  await node.fallSilent();
  t.like(await overview.shown('node_channel'), { level: 'act', problem: 'unreachable', clusterId: null });
  await api.ok('PUT', '/settings/node-channel', { url: '' });
  await node.beat(await node.onTarget());
  await overview.gone('node_channel');
});

test.serial('asked about a cluster, everything in the answer is about that cluster', async (t) => {
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/overview?clusterId=nowhere');
  await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'GET', '/overview/traffic?clusterId=nowhere');
  const other = await api.cluster('tokyo');
  const away = await api.node(other, 'away', { online: false });
  const sites = [await api.site(other, 'one.tokyo.example'), await api.site(other, 'two.tokyo.example')];
  await api.ok('PUT', `/sites/${sites[1].id}/enabled`, { enabled: false });
  const ban = (more: object) => api.ok('POST', '/bans', { reason: 'abuse', durationSeconds: 600, ...more });
  await ban({ scope: 'platform', cidr: '198.18.7.1' });
  const everywhere = await eventually(async () => {
    const latest = (await overview.get(clusterId)).propagation.bans.latest;
    return latest?.nodes.total === 1 && latest;
  });
  t.like(everywhere, { clusterId: null, clusterName: null });
  await ban({ scope: 'site', siteId: sites[0].id, cidr: '198.18.7.2' });
  await ban({ scope: 'site', siteId, cidr: '198.18.7.3' });
  await api.ok('PATCH', `/sites/${sites[0].id}/protection`, { underAttack: true });
  await api.ok('PUT', '/settings/protection', { underAttack: true });
  const minute = new Date(Math.floor(Date.now() / 60_000 - 10) * 60_000);
  await api.sql('cluster_request_minute').insert({ cluster_id: clusterId, minute, requests: 60 });
  // The answer may be from before.
  const here = await eventually(async () => {
    const now = await overview.get(clusterId);
    return now.traffic !== null && now.attention.length === 1 && now;
  });
  const there = await eventually(async () => {
    const now = await overview.get(other);
    return now.attention.length === 3 && now;
  });
  const kinds = ({ attention }: Body) => attention.map(({ kind }: Body) => kind);
  t.deepEqual(kinds(here), ['under_attack_on']);
  t.deepEqual(kinds(there).toSorted(), ['nodes_unhealthy', 'sites_under_attack', 'under_attack_on']);
  t.like(here, { clusters: 1, nodes: 1, onlineNodes: 1, sites: 1, bans: { manual: 2, automatic: 0 } });
  t.like(there, { clusters: 1, nodes: 1, onlineNodes: 0, sites: 2, bans: { manual: 2, automatic: 0 } });
  t.deepEqual(there.siteStates, { live: 0, partial: 0, pending: 0, unserved: 0, unknown: 1, disabled: 1 });
  t.is(there.nodeStates.offline, 1);
  t.is(there.attention.find(({ kind }: Body) => kind === 'nodes_unhealthy').clusterId, other);
  for (const [answer, id] of [
    [here, clusterId],
    [there, other],
  ] as const) {
    t.true(answer.revisions.length > 0);
    t.true(answer.revisions.every((revision: Body) => revision.clusterId === id));
    t.is(answer.propagation.config.latest.clusterId, id);
    t.is(answer.propagation.bans.latest.clusterId, id);
    t.is(answer.propagation.bans.latest.nodes.total, 1);
  }
  t.is(there.traffic, null);
  t.deepEqual(await api.ok('GET', `/overview/traffic?clusterId=${other}`), { from: null, requestsPerSecond: [] });
  t.not((await api.ok('GET', `/overview/traffic?clusterId=${clusterId}`)).from, null);

  await api.ok('PUT', '/settings/protection', { underAttack: false });
  await api.sql('cluster_request_minute').delete();
  await api.sql('node').where({ id: away }).delete();
  for (const { id } of sites) await api.ok('DELETE', `/sites/${id}`);
  await api.ok('DELETE', `/clusters/${other}`);
  await node.beat(await node.onTarget());
  await overview.gone('under_attack_on');
});

test.serial('kinds come in the order of the specification, and its kinds are never cut', async (t) => {
  const clusters: string[] = [];
  for (let index = 0; index < 60; index++) clusters.push(await api.cluster(`full-${index}`));
  for (const id of clusters) await api.node(id, `away-${id.slice(-4)}`, { online: false });
  for (let index = 0; index < 7; index++) await api.node(clusters[0]!, `more-${index}`, { online: false });
  await api.ok('PUT', '/settings/protection', { underAttack: true });
  const answer = await eventually(async () => {
    const now = await overview.get();
    return now.attentionTotal === 61 && now;
  });
  t.is(answer.attention.length, 61);
  t.like(answer.attention[0], { clusterId: clusters[0], count: 8 });
  t.is(answer.attention[0].named.length, 5);
  t.is(answer.nodes, 68);
  t.is(answer.onlineNodes, 1);
  await api.sql('node').whereIn('cluster_id', clusters.slice(1)).delete();
  const shorter = await eventually(async () => {
    const now = await overview.get();
    return now.attentionTotal === 2 && now;
  });
  const order = shorter.attention.map(({ kind }: Body) => (ATTENTION_KINDS as readonly string[]).indexOf(kind));
  t.deepEqual(
    order,
    order.toSorted((a: number, b: number) => a - b),
  );
  t.is(order.length, 2);
  await api.ok('PUT', '/settings/protection', { underAttack: false });
  for (const id of clusters) {
    await api.sql('node').where({ cluster_id: id }).delete();
    await api.ok('DELETE', `/clusters/${id}`);
  }
});
