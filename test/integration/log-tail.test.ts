// Requests of a real node as they end: shown whether the site logs or not, to those who look for them, only while somebody
// does, also after agent, Caddy and connections died.
import { request } from 'node:http';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { edgeChildren } from '../../bin/lib/edge-process.ts';
import { MAX_TAIL_ROWS } from '../../contract/resources/log-tail.ts';
import { BrowserClient } from '../helpers/browser-client.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { trafficOrigin } from '../helpers/counted-traffic.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import type { Body } from '../helpers/resources.ts';
import { requestTail, TailClient, type TailOptions, watchTail } from '../helpers/tail-client.ts';

const DOMAIN = 'tailed.example';

let running: TestConsoleProcess;
let node: EdgeNode;
let origin: Awaited<ReturnType<typeof trafficOrigin>>;
let edgeUrl: string;
let siteId: string;

test.before('a console, an edge node and a site that logs nothing', async () => {
  const [port, nodePort, edgePort] = [await freePort(), await freePort(), await freePort()];
  edgeUrl = `http://127.0.0.1:${edgePort}`;
  running = await startTestConsoleProcess({
    env: { PORT: String(port), NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}` },
  });
  const { client } = running;
  const clusterId = (await client.api<Body>('GET', '/clusters')).items[0].id;
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  node = await startEdgeNode({ client, clusterId, listen: `127.0.0.1:${edgePort}`, kernelBans: 'off' });
  origin = await trafficOrigin();
  const input = { clusterId, domains: [DOMAIN], origins: [{ address: '127.0.0.1', port: origin.port }] };
  siteId = (await client.api<Body>('POST', '/sites', input)).site.id;
  await eventually(async () => (await get('/ready')) === 200);
});
test.after.always('stop', async (t) => {
  if (!t.passed) for (const line of node?.log().split('\n').slice(-40) ?? []) t.log(line);
  await node?.stop();
  await origin?.stop();
  await running?.stop();
});

async function get(path: string, headers: Record<string, string> = {}): Promise<number> {
  const url = new URL(edgeUrl);
  return new Promise((resolve, reject) => {
    const options = { host: url.hostname, port: url.port, path, headers: { host: DOMAIN, ...headers } };
    const sent = request(options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!));
    });
    sent.on('error', reject).end();
  });
}

const tail = (filter: Partial<TailOptions> = {}): Promise<TailClient> =>
  watchTail(running.url, { cookie: running.client.cookie, id: siteId, ...filter });

/** Asks until a request is shown, which says that the node knows of the tail. */
async function shown(client: TailClient, path: string, headers: Record<string, string> = {}): Promise<void> {
  await eventually(
    async () => {
      await get(path, headers).catch(() => 0);
      return client.entries.some((entry) => entry.path === path);
    },
    { timeoutMs: 60_000, what: `${path} in the tail` },
  );
}

test.serial('requests of a site that logs nothing are shown, and not stored', async (t) => {
  const client = await tail();
  await shown(client, '/begun');
  await get('/one?secret=1', { 'user-agent': 'tester', cookie: 'a=secret' });
  const row = await client.row(({ path }) => path === '/one');
  t.like(row, {
    siteId,
    method: 'GET',
    host: DOMAIN,
    status: 200,
    clientIp: '127.0.0.1',
    userAgent: 'tester',
    query: null,
    sampleRate: 10_000,
    upstreamStatus: 200,
  });
  t.truthy(row.nodeName);
  t.false(JSON.stringify(client.lines).includes('secret'));
  t.is(client.dropped, 0);
  await client.close();
  const range = { from: new Date(Date.now() - 600_000).toISOString(), to: new Date().toISOString() };
  const stored = await running.client.api<Body>('GET', `/sites/${siteId}/logs?${new URLSearchParams(range)}`);
  t.deepEqual(stored.entries, []);
});

test.serial('each reader gets what it looks for', async (t) => {
  const posts = await tail({ ua: 'BOT', path: '/looked' });
  const all = await tail();
  await shown(all, '/looked-0');
  await shown(posts, '/looked-1', { 'user-agent': 'some bot' });
  await get('/looked-2', { 'user-agent': 'somebody' });
  await get('/other', { 'user-agent': 'some bot' });
  await get('/looked-3', { 'user-agent': 'some bot' });
  await posts.row(({ path }) => path === '/looked-3');
  await all.row(({ path }) => path === '/looked-3');
  const paths = new Set(posts.entries.map(({ path }) => path));
  t.deepEqual([...paths], ['/looked-1', '/looked-3']);
  t.true(['/looked-2', '/other'].every((path) => all.entries.some((entry) => entry.path === path)));
  await posts.close();
  await all.close();
});

test.serial('beyond so many rows a second they are dropped, and the tail says how many', async (t) => {
  const client = await tail();
  await shown(client, '/flood-begun');
  const before = client.entries.length;
  const requests = 4 * MAX_TAIL_ROWS;
  const begun = Math.floor(Date.now() / 1000);
  for (let sent = 0; sent < requests; sent += 50) {
    await Promise.all(Array.from({ length: 50 }, () => get('/flood')));
  }
  const seconds = Math.floor(Date.now() / 1000) - begun + 1;
  const told = () => client.entries.filter(({ path }) => path === '/flood').length;
  await eventually(() => told() + client.dropped >= requests, { what: 'all rows or their number' });
  t.is(told() + client.dropped, requests);
  t.true(client.entries.length - before <= (seconds + 1) * MAX_TAIL_ROWS);
  await client.close();
});

test.serial('a tail goes on after agent and Caddy were killed', async (t) => {
  const client = await tail();
  await shown(client, '/before-kills');
  for (const name of ['agent', 'caddy'] as const) {
    const child = () => edgeChildren(node.supervisor.pid)[name];
    const pid = await eventually(child, { timeoutMs: 60_000, what: `the ${name}` });
    process.kill(pid, 'SIGKILL');
    await eventually(() => (child() ?? pid) !== pid, { timeoutMs: 60_000, what: `the next ${name}` });
    await shown(client, `/after-${name}`);
  }
  await client.close();
  t.pass();
});

test.serial('who may not read logs gets no tail, and a tail ends with its session', async (t) => {
  const { cookie } = running.client;
  const status = async (options: TailOptions): Promise<string> => {
    const { response, abort } = await requestTail(running.url, options);
    const text = response.status === 200 ? '{}' : await response.text();
    abort.abort();
    return `${response.status} ${JSON.parse(text).code ?? ''}`;
  };
  t.is(await status({ cookie: '', id: siteId }), '401 UNAUTHORIZED');
  t.is(await status({ cookie, id: 'none' }), '404 SITE_NOT_FOUND');
  t.is(await status({ cookie, id: siteId, ip: 'nowhere' }), '400 LOG_FILTER_INVALID');
  t.is(await status({ cookie, id: siteId, statusClass: 9 } as TailOptions), '400 BAD_REQUEST');

  const browser = new BrowserClient(running.url, 'http://localhost:3000');
  await browser.signIn({ email: TEST_OPERATOR.email, password: TEST_OPERATOR.password });
  const tails: TailClient[] = [];
  let refused = '';
  while (refused === '' && tails.length < 10) {
    const { response, abort } = await requestTail(running.url, { cookie: browser.cookie, id: siteId });
    if (response.status === 200) {
      tails.push(new TailClient(response, abort));
    } else refused = `${response.status} ${((await response.json()) as Body).code}`;
  }
  t.is(`${tails.length} ${refused}`, '4 429 LIVE_STREAM_LIMIT');
  await browser.auth('POST', '/sign-out', {});
  await Promise.all(tails.map(({ ended }) => ended));
  t.deepEqual(tails[0]!.lines.at(-1), { type: 'end', reason: 'session' });
});
