// Live updates in a real browser: twelve tabs and one stream, pages that follow what happens without asking, and what they
// show after the console was away.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startBrowser } from '../helpers/browser.ts';
import { startTestConsole, TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';
import { signIn, startBrowsedConsole, type VisitOptions, visit } from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body, originIdsOf } from '../helpers/resources.ts';
import { createTestDatabase, redisPrefix, servers } from '../helpers/servers.ts';

const TABS = 12;

let browser: Browser;
let running: TestConsole & { origin: string };
let api: Api;
let clusterId: string;

test.before(async () => {
  browser = await startBrowser();
  running = await startBrowsedConsole();
  api = new Api(running);
  [{ id: clusterId }] = (await api.ok('GET', '/clusters')).items;
});

test.after.always(async () => {
  await browser?.close();
  await running?.stop();
});

async function signedIn(options: VisitOptions = {}) {
  const visitor = await visit(browser, running.origin, options);
  await signIn(visitor.context, running.origin, TEST_OPERATOR);
  return visitor;
}

async function openPage(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(path);
  await page.locator('h1').waitFor();
  return page;
}

/** Streams that the console serves now. */
async function streams(of: TestConsole = running): Promise<number> {
  const text = await (await fetch(`${of.metricsUrl}/metrics`)).text();
  return Number(/^svc_live_streams (\d+)$/m.exec(text)?.[1]);
}

const streamsAre = (count: number) => eventually(async () => (await streams()) === count, { what: `${count} streams` });

const newSite = (name: string): Promise<Body> =>
  api.site(clusterId, `${name}.example.com`, { name, origins: [{ address: '93.184.216.34' }] });

/** Requests to a procedure, counted from now on. */
function count(context: BrowserContext, procedure: string): () => number {
  let asked = 0;
  context.on('request', (request) => {
    if (request.url().endsWith(`/rpc/${procedure}`)) asked++;
  });
  return () => asked;
}

test.serial('twelve tabs share one stream, and all follow it', async (t) => {
  const visitor = await signedIn();
  const { context } = visitor;
  const first = await openPage(context, '/sites');
  await streamsAre(1);
  const tabs = [first];
  for (let index = 1; index < TABS; index++) tabs.push(await openPage(context, '/sites'));
  t.is(await streams(), 1);
  // A tab that cannot be seen may wait until it is looked at.
  await newSite('everywhere');
  for (const tab of tabs.toReversed()) {
    await tab.bringToFront();
    await tab.getByText('everywhere.example.com').first().waitFor({ timeout: 10_000 });
  }
  t.is(await streams(), 1);
  for (const tab of tabs.slice(1)) await tab.close();
  t.is(await streams(), 1);
  await first.close();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
  await streamsAre(0);
});

test.serial('a page that nothing happens to asks nothing, and neither does the health dot', async (t) => {
  const visitor = await signedIn();
  const asked = [count(visitor.context, 'overview/get'), count(visitor.context, 'sites/list')];
  const page = await openPage(visitor.context, '/sites');
  await streamsAre(1);
  // Its heartbeats are the only thing that goes on.
  const fleet = await startTestFleet(running, clusterId, 1);
  await newSite('one-more');
  await page.getByText('one-more.example.com').first().waitFor({ timeout: 10_000 });
  await page.waitForTimeout(10_000);
  const before = asked.map((each) => each());
  await page.waitForTimeout(30_000);
  const after = asked.map((each) => each());
  t.true(before.every((number) => number > 0));
  // Asked every 10 and 15 s it would be three and two.
  t.true(
    after.every((number, index) => number - before[index]! <= 1),
    `${before} to ${after}`,
  );
  await fleet.stop();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('after a sign-out the stream ends, and begins again after the next sign-in', async (t) => {
  const visitor = await signedIn();
  const page = await openPage(visitor.context, '/sites');
  await streamsAre(1);
  await visitor.context.request.post('/api/auth/sign-out', { data: {}, headers: { origin: running.origin } });
  await streamsAre(0);
  await signIn(visitor.context, running.origin, TEST_OPERATOR);
  await page.reload();
  await streamsAre(1);
  await newSite('signed-in-again');
  await page.getByText('signed-in-again.example.com').first().waitFor({ timeout: 10_000 });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

// What browsers without shared workers do.
for (const [what, without] of [
  ['one tab reads for all where there are no shared workers', 'delete window.SharedWorker'],
  [
    'where the policy of the browser refuses them',
    'window.SharedWorker = class { constructor() { this.port = { postMessage() {} }; setTimeout(() => this.onerror(new Event("error"))); } }',
  ],
] as const) {
  test.serial(what, async (t) => {
    const visitor = await signedIn();
    await visitor.context.addInitScript(without);
    const leader = await openPage(visitor.context, '/sites');
    await streamsAre(1);
    const follower = await openPage(visitor.context, '/sites');
    const name = `led-${without.length}`;
    await newSite(name);
    await follower.getByText(`${name}.example.com`).first().waitFor({ timeout: 10_000 });
    t.is(await streams(), 1);
    await leader.close();
    await streamsAre(1);
    await newSite(`${name}-on`);
    await follower.getByText(`${name}-on.example.com`).first().waitFor({ timeout: 10_000 });
    t.deepEqual(visitor.faults(), []);
    await visitor.close();
    await streamsAre(0);
  });
}

test.serial('a page follows again after the console was away, and shows what happened meanwhile', async (t) => {
  const database = await createTestDatabase(await servers());
  // Without its end: each console would drop it when it stops.
  const shared = {
    database: { url: database.url },
    masterKey: randomBytes(32).toString('base64'),
    redisPrefix: redisPrefix(),
  };
  const one = await startBrowsedConsole(shared);
  const other = await startTestConsole({ ...shared, setUp: false });
  try {
    const visitor = await visit(browser, one.origin);
    await signIn(visitor.context, one.origin, TEST_OPERATOR);
    const page = await openPage(visitor.context, '/sites');
    await eventually(async () => (await streams(one)) === 1);
    const lost = page.getByText('Connection to the console lost.');
    t.is(await lost.count(), 0);
    await one.stop();
    await lost.waitFor();
    // By another process, while the one that the page knows is away.
    other.client.accessKey = one.client.accessKey;
    const elsewhere = new Api(other);
    const [cluster] = (await elsewhere.ok('GET', '/clusters')).items;
    await elsewhere.site(cluster.id, 'meanwhile.example.com', { origins: [{ address: '93.184.216.34' }] });
    const again = await startBrowsedConsole({
      ...shared,
      setUp: false,
      env: { PORT: one.env.PORT!, SVC_PUBLIC_URL: one.origin },
    });
    try {
      await page.getByText('meanwhile.example.com').first().waitFor({ timeout: 60_000 });
      await lost.waitFor({ state: 'hidden' });
      await eventually(async () => (await streams(again)) === 1);
      await elsewhere.site(cluster.id, 'afterwards.example.com', { origins: [{ address: '93.184.216.34' }] });
      await page.getByText('afterwards.example.com').first().waitFor({ timeout: 10_000 });
      t.deepEqual(visitor.faults(), []);
      await visitor.close();
    } finally {
      await again.stop();
    }
  } finally {
    await other.stop();
    await one.stop();
    await database.drop();
  }
});

test.serial('a page whose live updates do not come says so, until they are back', async (t) => {
  const visitor = await signedIn();
  // Requests of workers cannot be stopped here.
  await visitor.context.addInitScript('delete window.SharedWorker');
  await visitor.context.route('**/rpc/live/watch', (route) => route.abort('connectionrefused'));
  const page = await openPage(visitor.context, '/sites');
  const away = page.getByText('Live updates are interrupted.');
  await away.waitFor();
  t.is(await page.getByText('Connection to the console lost.').count(), 0);
  await visitor.context.unroute('**/rpc/live/watch');
  await away.waitFor({ state: 'hidden' });
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('the health of origins follows what nodes report', async (t) => {
  const { id: cluster } = await api.ok('POST', '/clusters', { name: 'watched' });
  const activeHealthCheck = { enabled: true, path: '/healthz' };
  const origins = [{ address: '93.184.216.34' }, { address: 'backup.example.com', scheme: 'https', backup: true }];
  const site = await api.site(cluster, 'watched.example.com', { origins, originSettings: { activeHealthCheck } });
  const [originId] = await originIdsOf(api, cluster, site.id);
  const nodes = [await ReportingNode.enroll(running, cluster, ['active-health-v1', 'bans-v1'])];
  nodes.push(await ReportingNode.enroll(running, cluster, ['bans-v1']));
  const [node] = nodes as [ReportingNode];
  for (const each of nodes) await each.beat();
  const visitor = await signedIn();
  const page = await openPage(visitor.context, `/sites/${site.id}/origins`);
  const health = page.getByRole('region', { name: 'Health now' });
  const up = health.getByRole('button', { name: /^http:\/\/93\.184\.216\.34:80 Up$/ });
  await up.waitFor();
  const failed = { siteId: site.id, originId, active: true, error: 'upstream_status', status: 503 };
  const at = BigInt(Date.now() - 60_000);
  const times = { consecutiveFailures: 3, lastFailureMs: at, downSinceMs: at, lastCheckMs: at };
  await node.beat({ originHealth: [{ ...failed, ...times }] });
  await health.getByText('Down on 1 of 2 nodes').waitFor();
  await health.getByRole('button', { name: /^http:\/\/93.*status 503$/ }).click();
  await health.getByText(/^Checks: status 503, down since/).waitFor();
  await health.getByText('Makes no checks: upgrade required').first().waitFor();
  await health.getByText('No requests in the last minute').first().waitFor();
  const failures = [{ name: 'timeout', count: 5n }];
  await node.beat({
    originTraffic: [{ siteId: site.id, originId, requests: 200, latency: [0, 0, 185, 10], failures }],
  });
  await health.getByText('5 of 200 (2.5%)').waitFor();
  await health.getByText('timeout: 5').waitFor();
  await health.getByRole('img', { name: /from 1 ms to 33 sec, each bar a range: median 4 ms, p95 8 ms$/ }).waitFor();
  await node.beat();
  await up.waitFor();
  for (const each of nodes) each.stop();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
