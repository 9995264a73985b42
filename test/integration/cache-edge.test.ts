// What visitors get from the cache: rules and purges by API, served by a real edge in front of a real origin, which dies,
// is away, and comes back.
import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import test from 'ava';
import type { TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startLocalOrigin, startNodeConsole } from '../helpers/local-edge.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;

test.before('start', async () => {
  running = await startNodeConsole();
});
test.after.always('stop', () => running?.stop());

const HOST = 'cached.example';

const isLogWithRecords = (path: string) => /^log\.\d+$/.test(basename(path)) && statSync(path).size > 0;

test.serial('responses are stored, and nothing is served that is older than its purge', async (t) => {
  const api = new Api(running);
  const clusterId = await api.cluster('cached');
  let asked = 0;
  const { address, port } = await startLocalOrigin(t, api, (request, response) => {
    response.setHeader('Cache-Control', 'max-age=600');
    response.setHeader('Cache-Tag', `all, tag-${request.url}`);
    response.end(`${request.url} ${++asked}`);
  });
  const { ask, edge } = await startLocalEdge(t, running, clusterId);
  const { id } = await api.site(clusterId, HOST, { origins: [{ address, port }], cacheRules: [{ priority: 10 }] });
  const get = async (path: string) => {
    const { status, body, headers } = await ask(HOST, path);
    return { status, body, word: headers['x-cache'] };
  };
  /** The stored response. */
  const stored = async (path: string) =>
    (
      await eventually(async () => {
        const response = await get(path);
        return response.status === 200 && response.word === 'HIT' && response;
      })
    ).body;
  const done = (task: Body) =>
    eventually(async () => (await api.ok('GET', `/cache-tasks/${task.id}`)).state === 'succeeded', {
      what: `the end of the ${task.type} task`,
    });
  const features = async () => api.ok('GET', `/sites/${id}/features`);
  await eventually(async () => (await features()).cache.available && (await features()).purgeByTag.available);
  t.falsy((await ask(HOST, '/kept/1')).headers['cache-tag']);
  const kept = await stored('/kept/1');

  const url = (path: string) => `https://${HOST}${path}`;
  for (const [path, task] of [
    ['/a?q=1', { type: 'url', urls: [url('/%61?q=1')] }],
    ['/img/a.png', { type: 'prefix', urls: [url('/img/')] }],
    ['/tagged', { type: 'tag', siteIds: [id], tags: ['TAG-/tagged'] }],
  ] as const) {
    const before = await stored(path);
    await done(await api.ok('POST', '/cache-tasks', task));
    const after = await get(path);
    t.not(after.body, before, `${task.type}: ${after.word}`);
    t.is(after.word, 'MISS', task.type);
  }
  t.is((await get('/kept/1')).body, kept, 'what no purge concerns stays');

  // Caddy dies between a purge and the next request. What its index has not on disk yet, it would have to look for.
  const cacheDir = join(edge.stateDir, 'edge', 'cache');
  await eventually(
    () => readdirSync(cacheDir, { recursive: true }).some((name) => isLogWithRecords(join(cacheDir, String(name)))),
    { what: 'the index to be on disk' },
  );
  const killed = await stored('/killed');
  await done(await api.ok('POST', '/cache-tasks', { type: 'url', urls: [url('/killed')] }));
  process.kill(edge.pids()!.caddy, 'SIGKILL');
  const after = await eventually(async () => {
    const response = await get('/killed');
    return response.status === 200 && response;
  });
  t.not(after.body, killed, `after kill -9: ${after.word}`);
  t.is(await stored('/kept/1'), kept, 'the store outlives the process');

  // The node is away, and applies what it missed before it reports it.
  const [missed, missedToo] = [await stored('/missed'), await stored('/host')];
  await edge.supervisor.stop();
  const one = await api.ok('POST', '/cache-tasks', { type: 'url', urls: [url('/missed')] });
  t.is(one.nodes[0].state, 'pending');
  await edge.start();
  await done(one);
  t.not((await get('/missed')).body, missed);
  t.is(await stored('/kept/1'), kept);

  await done(await api.ok('POST', '/cache-tasks', { type: 'host', hosts: [HOST] }));
  t.not((await get('/host')).body, missedToo);
  t.not((await get('/kept/1')).body, kept);
  const last = await stored('/last');
  await done(await api.ok('POST', `/sites/${id}/purge`));
  t.not((await get('/last')).body, last);

  const usage = await eventually(async () => {
    const { cache } = await api.ok('GET', `/nodes/${edge.nodeId}`);
    return cache.usage?.usedBytes > 0 && cache.usage;
  });
  t.is(usage.maxBytes, 10 * 2 ** 30);
  await api.ok('PUT', `/nodes/${edge.nodeId}/cache`, { maxSizeGb: 2 });
  await eventually(async () => (await api.ok('GET', `/nodes/${edge.nodeId}`)).cache.usage.maxBytes === 2 * 2 ** 30);
});

test.serial('prefetches and sitemaps fill the cache of a node, as desktop and mobile clients', async (t) => {
  const api = new Api(running);
  const clusterId = await api.cluster('prefetching');
  const host = 'prefetching.example';
  const url = (path: string) => `http://${host}${path}`;
  const map = (urls: string[]) => `<urlset>${urls.map((at) => `<url><loc>${at}</loc></url>`).join('')}</urlset>`;
  const index = ['/pages.xml.gz', '/none.xml'].map((path) => `<sitemap><loc>${url(path)}</loc></sitemap>`).join('');
  const bodies: Record<string, string | Buffer> = {
    '/sitemap.xml': `<sitemapindex>${index}</sitemapindex>`,
    '/pages.xml.gz': gzipSync(map([url('/page/1'), 'http://other.example/', url('/page/2'), url('/page/1')])),
    '/empty.xml': map([]),
  };
  const asked: string[] = [];
  const held = Promise.withResolvers<void>();
  const { address, port } = await startLocalOrigin(t, api, async ({ url: path = '', headers }, response) => {
    const isMobile = `${headers['user-agent']}`.includes('Mobile');
    asked.push(`${path} ${isMobile ? 'mobile' : 'desktop'}`);
    if (path === '/held') await held.promise;
    if (path === '/gone' || path === '/none.xml') response.statusCode = 404;
    if (path === '/moved') response.writeHead(301, { location: '/elsewhere' });
    response.end(bodies[path] ?? path);
  });
  const { ask, edge } = await startLocalEdge(t, running, clusterId);
  const cacheSettings = { cacheKey: { deviceType: true } };
  const cacheRules = [{ priority: 10, edgeTtlSeconds: 600 }];
  const { id } = await api.site(clusterId, host, { origins: [{ address, port }], cacheRules, cacheSettings });
  const wordOf = async (path: string) => (await ask(host, path)).headers['x-cache'];
  await eventually(async () => {
    const { cache, prefetchVariants } = await api.ok('GET', `/sites/${id}/features`);
    return cache.available && prefetchVariants.available && (await wordOf('/served')) === 'HIT';
  });
  const until = (task: Body, isSo: (task: Body) => boolean) =>
    eventually(
      async () => {
        const now = await api.ok('GET', `/cache-tasks/${task.id}`);
        return isSo(now) && now;
      },
      { what: `the ${task.type} task` },
    );
  const begin = (body: Body) => api.ok('POST', '/cache-tasks', body);
  const ended = async (body: Body) => until(await begin(body), ({ finishedAt }) => finishedAt !== null);

  const urls = ['/a?q=1', '/moved'].map(url);
  const task = await ended({ type: 'prefetch', urls, variants: ['desktop', 'mobile'] });
  t.like(task, { state: 'succeeded', nodes: [{ nodeId: edge.nodeId, state: 'succeeded', succeeded: 2, failed: 0 }] });
  t.deepEqual(asked.filter((line) => !line.startsWith('/served')).sort(), [
    '/a?q=1 desktop',
    '/a?q=1 mobile',
    '/moved desktop',
    '/moved mobile',
  ]);
  for (const path of ['/a?q=1', '/moved']) t.is(await wordOf(path), 'HIT', path);

  const failed = await ended({ type: 'prefetch', urls: ['/gone', '/b'].map(url) });
  t.like(failed, { state: 'failed', nodes: [{ errorCode: 'prefetch_failed', succeeded: 1, failed: 1 }] });
  const why = { url: url('/gone'), reason: 'status', status: '404' };
  t.deepEqual(failed.nodes[0].errorParams, { failed: '1', total: '2', ...why });

  const sitemap = await ended({ type: 'sitemap', urls: [url('/sitemap.xml')] });
  t.like(sitemap, { state: 'failed', nodes: [{ errorCode: 'sitemap_failed', succeeded: 2 }] });
  t.deepEqual(sitemap.nodes[0].errorParams, { ...why, url: url('/none.xml') });
  for (const path of ['/page/1', '/page/2']) t.is(await wordOf(path), 'HIT', path);
  const empty = await ended({ type: 'sitemap', urls: [url('/empty.xml')] });
  t.like(empty.nodes[0], { errorCode: 'sitemap_empty' });

  // How far a node is can be seen while it goes on.
  const slow = await begin({ type: 'prefetch', urls: ['/held', '/c', '/d'].map(url) });
  await until(slow, ({ nodes: [node] }) => node.state === 'running' && node.succeeded === 2);
  held.resolve();
  const done = await until(slow, ({ finishedAt }) => finishedAt !== null);
  t.like(done, { state: 'succeeded', nodes: [{ succeeded: 3, failed: 0 }] });

  await api.ok('PUT', `/sites/${id}/enabled`, { enabled: false });
  await api.refused(t, [409, 'SITE_DISABLED'], 'POST', '/cache-tasks', { type: 'prefetch', urls: [url('/')] });
});

test.serial('a PURGE request with the key of the site purges its URL on all nodes', async (t) => {
  const api = new Api(running);
  const clusterId = await api.cluster('purging');
  let asked = 0;
  const methods = new Set<string>();
  const { address, port } = await startLocalOrigin(t, api, ({ method = '' }, response) => {
    methods.add(method);
    response.setHeader('Cache-Control', 'max-age=600').end(`${++asked}`);
  });
  const { ask, send, edge } = await startLocalEdge(t, running, clusterId);
  const site = { origins: [{ address, port }], cacheRules: [{ priority: 10 }] };
  const purgeMethod = { enabled: true, key: 'a-key-of-the-purging-site' };
  const { id } = await api.site(clusterId, 'purging.example', { ...site, cacheSettings: { purgeMethod } });
  await api.site(clusterId, 'open.example', site);
  const purge = (path: string, key = purgeMethod.key, host = 'purging.example') =>
    send(host, { method: 'PURGE', path, headers: { 'x-purge-key': key } });
  const stored = () =>
    eventually(async () => {
      const { headers, body } = await ask('purging.example', '/a?b=1');
      return headers['x-cache'] === 'HIT' && body;
    });

  await eventually(async () => (await purge('/other')).status === 202);
  const before = await stored();
  const { status, headers, body } = await eventually(async () => {
    const response = await purge('/a?b=1');
    // The requests before may have used up the second.
    return response.status !== 429 && response;
  });
  t.is(status, 202, body);
  t.like(headers, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  const { task_id: taskId } = JSON.parse(body);
  const task = await eventually(async () => {
    const now = await api.ok('GET', `/cache-tasks/${taskId}`);
    return now.state === 'succeeded' && now;
  });
  const { name } = await api.ok('GET', `/nodes/${edge.nodeId}`);
  t.like(task, { type: 'url', source: 'purge_method', createdByName: name, sites: [{ id }] });
  t.deepEqual(task.targets, ['http://purging.example/a?b=1']);
  const after = await ask('purging.example', '/a?b=1');
  t.is(after.headers['x-cache'], 'MISS');
  t.not(after.body, before);

  const wrong = () => purge('/a', 'b-key-of-the-purging-site');
  const refused = await eventually(async () => {
    const response = await wrong();
    return response.status !== 429 && response;
  });
  t.is(refused.status, 403);
  t.like(JSON.parse(refused.body), { code: 'purge-key-invalid' });
  const limited = await eventually(async () =>
    (await Promise.all(Array.from({ length: 60 }, wrong))).find((response) => response.status === 429),
  );
  t.is(limited.headers['retry-after'], '1');
  t.false(methods.has('PURGE'), 'origins get none of them');
  t.is((await purge('/a', purgeMethod.key, 'open.example')).status, 200);
  t.true(methods.has('PURGE'), 'without the setting origins get the method');
  await running.running.stop();
  const away = await eventually(async () => {
    const response = await purge('/a');
    return response.status === 503 && response;
  });
  t.like(JSON.parse(away.body), { code: 'purge-unavailable' });
  t.is((await ask('purging.example', '/a?b=1')).body, after.body, 'what is stored is served without the console');
});
