// Cache tasks through /api/v1: what is taken, what nodes get of it, and what becomes of it on each node.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { foldPurges, readPurges } from '../../models/cache/purge.ts';
import { type Purge, PurgeBatchSchema, PurgeScope } from '../../proto/gen/svc/node/v1/purges_pb.js';
import purgeFeed from '../../services/purge-fanout/purge-fanout.feed.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

const unique = () => `purged-${made++}`;
const ABLE = ['feeds-v1', 'purge-tag-v1'];

/** A cluster with a site of three forms of domains. */
async function purgeable() {
  const clusterId = await api.cluster(unique());
  const name = unique();
  const domains = [`${name}.example`, `*.${name}.example`, `~${name}-[0-9]+\\.test`];
  const { site } = await api.ok('POST', '/sites', { clusterId, domains, origins: [{ address: 'origin.example' }] });
  return { clusterId, name, site: site as Body };
}

/** What nodes of the cluster get after a place. */
async function purgesOf(clusterId: string, from = 0n): Promise<Purge[]> {
  const { channel } = running.running.runtime.pools;
  const all: Purge[] = [];
  for (let at = from; ; ) {
    const { to, body } = await readPurges(channel, clusterId, at, 1_000_000n);
    // What says only where it leads is left out.
    const { purges } = fromBinary(PurgeBatchSchema, body);
    all.push(...purges.filter(({ siteIds, targets }) => siteIds.length + targets.length > 0));
    if (to === 1_000_000n) return all;
    at = to;
  }
}

test('tasks that cannot be are refused with their field', async (t) => {
  const { site, name } = await purgeable();
  const host = `${name}.example`;
  const siteIds = [site.id];
  const create = (body: Body) => api.call('POST', '/cache-tasks', body);
  for (const [body, code, data] of [
    [{ type: 'url', urls: ['/a', `ftp://${host}/`, 'http://u:p@a/'] }, 'CACHE_TASK_URL_INVALID', 'urls'],
    [{ type: 'url', urls: ['https://no-site.example/'] }, 'CACHE_TASK_URL_INVALID', 'urls'],
    [{ type: 'prefix', urls: [`https://${host}/a?b`] }, 'CACHE_TASK_URL_INVALID', 'urls'],
    [{ type: 'host', hosts: [`${host}:80`, `*.${host}`, ''] }, 'CACHE_TASK_HOST_INVALID', 'hosts'],
    [{ type: 'host', hosts: [`a.b.${host}`] }, 'CACHE_TASK_HOST_UNKNOWN', 'hosts'],
    [{ type: 'tag', siteIds, tags: ['a,b', ' ', 'é', 'x'.repeat(129)] }, 'CACHE_TASK_TAG_INVALID', 'tags'],
    [{ type: 'site', siteIds: [site.id, 'gone'] }, 'SITE_NOT_FOUND', null],
  ] as const) {
    const { status, body: answer } = await create(body);
    t.is(`${status} ${answer.code}`, `${code === 'SITE_NOT_FOUND' ? 404 : 400} ${code}`, JSON.stringify(body));
    if (data) t.deepEqual(answer.data[data], (body as Body)[data], code);
  }
  for (const [field, body] of [
    ['/urls', { type: 'url' }],
    ['/siteIds', { type: 'site' }],
    ['/tags', { type: 'tag', siteIds }],
    ['/hosts', { type: 'url', urls: [`http://${host}/`], hosts: [host] }],
    ['/maxUrls', { type: 'prefetch', urls: [`http://${host}/`], maxUrls: 5 }],
    ['/urls', { type: 'sitemap', urls: [`http://${host}/a`, `http://${host}/b`] }],
    ['/type', { type: 'other' }],
  ] as const)
    await api.badField(t, field, 'POST', '/cache-tasks', body);
  await api.refused(t, [404, 'CACHE_TASK_NOT_FOUND'], 'GET', '/cache-tasks/gone');
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'POST', '/sites/gone/purge');

  await api.ok('PUT', `/sites/${site.id}/enabled`, { enabled: false });
  for (const body of [
    { type: 'url', urls: [`http://${host}/`] },
    { type: 'host', hosts: [host] },
    { type: 'tag', siteIds, tags: ['a'] },
    { type: 'prefetch', urls: [`http://${host}/`] },
  ])
    await api.refused(t, [409, 'SITE_DISABLED'], 'POST', '/cache-tasks', body);
  await api.refused(t, [409, 'SITE_DISABLED'], 'POST', `/sites/${site.id}/purge`);
});

test('each type reaches nodes as what it purges, with the site of the host, and makes no revision', async (t) => {
  const { clusterId, site, name } = await purgeable();
  const host = `${name}.example`;
  const revisions = (await api.reasons(clusterId)).length;
  const target = (scope: PurgeScope, of: string, path: string, query = '') => ({
    scope,
    siteId: site.id,
    host: of,
    path,
    query,
  });
  for (const [body, purge, targets] of [
    [
      { type: 'url', urls: [`HTTPS://${host.toUpperCase()}:8443/%61/../b?q=1#x`, `http://www.${host}/`] },
      { targets: [target(PurgeScope.URL, host, '/b', 'q=1'), target(PurgeScope.URL, `www.${host}`, '/')] },
      [`https://${host}:8443/b?q=1`, `http://www.${host}/`],
    ],
    [
      { type: 'prefix', urls: [`http://${name}-7.test/img/`] },
      { targets: [target(PurgeScope.PREFIX, `${name}-7.test`, '/img/')] },
      [`http://${name}-7.test/img/`],
    ],
    [{ type: 'host', hosts: [`${host}.`, host] }, { targets: [target(PurgeScope.HOST, host, '')] }, [host]],
    [
      { type: 'tag', siteIds: [site.id], tags: [' Red', 'red', 'a b'] },
      { siteIds: [site.id], tags: ['red', 'a b'] },
      ['red', 'a b'],
    ],
    [{ type: 'site', siteIds: [site.id, site.id] }, { siteIds: [site.id] }, [site.name]],
  ] as const) {
    const before = (await purgesOf(clusterId)).length;
    const task = await api.ok('POST', '/cache-tasks', body);
    t.like(task, {
      type: body.type,
      targets: [...targets],
      sites: [{ id: site.id, name: site.name }],
      variants: [],
      maxUrls: null,
      source: 'user',
    });
    const purges = await purgesOf(clusterId, BigInt(before));
    t.is(purges.length, 1);
    t.like(purges[0], { siteIds: [], tags: [], sequence: BigInt(before + 1), ...purge });
    t.like(await api.audit(task.id), [{ action: 'cache.purge' }]);
  }
  const whole = await api.ok('POST', `/sites/${site.id}/purge`);
  t.like(whole, { type: 'site', targets: [site.name] });
  t.true(
    (await api.audit(site.id)).some(
      ({ action, metadata }) => action === 'site.purge_all' && metadata.taskId === whole.id,
    ),
  );
  t.is((await api.reasons(clusterId)).length, revisions);
  const list = await api.ok('GET', `/cache-tasks?siteId=${site.id}&pageSize=2`);
  t.is(list.total, 6);
  t.deepEqual([list.items.length, list.items[0].id], [2, whole.id]);
  const { items } = await api.ok('GET', '/cache-tasks?pageSize=100');
  t.true(items.some((task: Body) => task.id === whole.id));
});

test('a node has done a task once it reports the place; the others say why they have not', async (t) => {
  const { clusterId, site } = await purgeable();
  const node = (name: string, more = {}) => api.node(clusterId, name, { features: ABLE, ...more });
  const [ahead, behind, old] = [await node('ahead'), await node('behind'), await node('old', { features: [] })];
  const off = await node('off', { status: 'disabled' });
  const tag = { type: 'tag', siteIds: [site.id], tags: ['x'] };
  const { id, ...created } = await api.ok('POST', '/cache-tasks', tag);
  const late = await node('late');
  const states = ({ nodes }: Body) => Object.fromEntries(nodes.map((one: Body) => [one.nodeName, one.state]));
  const rest = { off: 'skipped', old: 'failed' };
  t.deepEqual(states(created), { ahead: 'pending', behind: 'pending', ...rest });
  const { epoch } = await api.sql('console_state').first('epoch');
  const reach = (nodeId: string, sequence: number) =>
    api
      .sql('node_feed')
      .insert({ node_id: nodeId, feed: purgeFeed.name, epoch, sequence, reached_at: new Date('2026-01-02T03:04:05Z') })
      .onConflict(['node_id', 'feed'])
      .merge();
  const read = () => api.ok('GET', `/cache-tasks/${id}`);
  await reach(behind, 0);
  await reach(ahead, 1);
  const half = await read();
  t.deepEqual([half.state, states(half)], ['running', { ahead: 'succeeded', behind: 'pending', ...rest }]);
  t.like(
    half.nodes.find(({ nodeId }: Body) => nodeId === old),
    { errorCode: 'task_unsupported', errorParams: { type: 'tag' } },
  );
  t.is(half.nodes.find(({ nodeId }: Body) => nodeId === off).errorCode, 'node_disabled');
  await reach(behind, 5);
  await eventually(async () => (await api.sql('cache_task').where({ id }).first()).finished_at !== null);
  const done = await read();
  t.deepEqual([done.state, states(done)], ['failed', { ahead: 'succeeded', behind: 'succeeded', ...rest }]);
  t.is(done.nodes[0].finishedAt, '2026-01-02T03:04:05.000Z');
  t.false(done.nodes.some(({ nodeId }: Body) => nodeId === late));

  // A node that was away for a week has its sites purged as a whole, and the task says when.
  const expiring = await api.ok('POST', '/cache-tasks', tag);
  await reach(ahead, 2);
  await reach(late, 0);
  await api.sql.raw(`update cache_task set created_at = now() - interval '8 days' where id = ?`, [expiring.id]);
  await api.sql.raw(`update node set enrolled_at = now() - interval '9 days' where cluster_id = ?`, [clusterId]);
  await eventually(async () => (await api.sql('cache_task').where({ id: expiring.id }).first()).finished_at !== null);
  const lateResult = async () =>
    (await api.ok('GET', `/cache-tasks/${expiring.id}`)).nodes.find(({ nodeId }: Body) => nodeId === late);
  t.like(await lateResult(), { state: 'failed', errorCode: 'task_expired', recoveredAt: null });
  await reach(late, 2);
  t.like(await lateResult(), { errorCode: 'task_expired', recoveredAt: '2026-01-02T03:04:05.000Z' });
});

test('a cluster without nodes has nothing to wait for; a prefetch fails on nodes that cannot do it', async (t) => {
  const { clusterId, site, name } = await purgeable();
  t.like(await api.ok('POST', `/sites/${site.id}/purge`), { state: 'succeeded', nodes: [] });
  await api.node(clusterId, 'able', { features: ABLE });
  const url = `https://${name}.example/`;
  const task = await api.ok('POST', '/cache-tasks', { type: 'prefetch', urls: [url], variants: ['mobile'] });
  t.like(task, { state: 'pending', variants: ['mobile'], nodes: [{ state: 'pending' }], finishedAt: null });
  const ended = await eventually(async () => {
    const now = await api.ok('GET', `/cache-tasks/${task.id}`);
    return now.finishedAt !== null && now;
  });
  t.like(ended, { state: 'failed', nodes: [{ state: 'failed', errorCode: 'task_unsupported' }] });
  t.like(await api.audit(task.id), [{ action: 'cache.prefetch' }]);
  t.like(await api.ok('POST', '/cache-tasks', { type: 'sitemap', urls: [url] }), { maxUrls: 1000, state: 'pending' });
});

test('a large purge is cut into numbers that fit, and old ones fold into their sites', async (t) => {
  const { clusterId, site, name } = await purgeable();
  const urls = Array.from({ length: 500 }, (_, n) => `http://${name}.example/${n}/${'x'.repeat(1980)}`);
  await api.ok('POST', '/cache-tasks', { type: 'url', urls });
  const purges = await purgesOf(clusterId);
  t.true(purges.length > 4);
  t.deepEqual(
    purges.map(({ sequence }) => sequence),
    purges.map((_, index) => BigInt(index + 1)),
  );
  t.is(
    purges.reduce((sum, { targets }) => sum + targets.length, 0),
    500,
  );

  const last = BigInt(purges.length);
  const other = await api.site(clusterId, `${unique()}.example`);
  await api.ok('POST', '/cache-tasks', { type: 'tag', siteIds: [other.id, site.id], tags: ['a'] });
  await api.sql.raw(`update purge set created_at = now() - interval '8 days' where cluster_id = ? and seq <= ?`, [
    clusterId,
    String(last),
  ]);
  const { runtime } = running.running;
  await foldPurges(api.sql);
  const left = await purgesOf(clusterId);
  t.deepEqual(
    left.map(({ sequence, siteIds, tags }) => [sequence, siteIds, tags]),
    [
      [last, [site.id], []],
      [last + 1n, [site.id, other.id], ['a']],
    ],
  );
  // A node that was away in the middle of it gets the whole site; one that has it all gets nothing.
  t.is((await purgesOf(clusterId, last - 1n)).length, 2);
  const rows = purgeFeed.repair!(runtime);
  const { epoch } = (await api.sql('console_state').first('epoch')) as { epoch: string };
  const at = (position: bigint, of = BigInt(epoch)) => ({ epoch: of, position });
  for (const [held, reset, count] of [
    [null, true, 2],
    [at(last), false, 1],
    [at(last + 1n), false, 0],
    [at(last + 2n), true, 2],
    [at(1n, 1n), true, 2],
  ] as const) {
    const page = await rows(clusterId, held, '');
    t.is(page.reset, reset);
    t.deepEqual(page.place, at(last + 1n));
    t.is(fromBinary(PurgeBatchSchema, page.body).purges.length, count);
  }
  await t.throwsAsync(rows(clusterId, null, 'x'), { instanceOf: RangeError });
  await api.ok('DELETE', `/sites/${site.id}`);
  const [none] = await purgesOf(clusterId, last - 1n);
  t.is(none!.sequence, last + 1n);
});
