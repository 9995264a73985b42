// Request logs of a real node: a request is found at the API within seconds, also while agent and Caddy are killed, and
// what clients send cannot break a row.
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { edgeChildren } from '../../bin/lib/edge-process.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { trafficOrigin } from '../helpers/counted-traffic.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import type { Body } from '../helpers/resources.ts';

const DOMAIN = 'logged.example';
const FOUND_MS = 10_000;
const KILLS = 2;

let running: TestConsoleProcess;
let node: EdgeNode;
let origin: Awaited<ReturnType<typeof trafficOrigin>>;
let edgePort: number;
let siteId: string;

test.before('a console, an edge node and an origin', async () => {
  const [port, nodePort] = [await freePort(), await freePort()];
  edgePort = await freePort();
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
  await client.api('PUT', `/sites/${siteId}/logs/settings`, {
    sampleRate: 10_000,
    logBlocked: true,
    logQuery: true,
    logHeaders: ['x-note'],
  });
  // The first row that arrives says that the settings are in force.
  await eventually(async () => {
    await get('/first');
    return (await rows({ path: '/first' })).length > 0;
  });
});
test.after.always('stop', async (t) => {
  if (!t.passed) for (const line of node?.log().split('\n').slice(-40) ?? []) t.log(line);
  await node?.stop();
  await origin?.stop();
  await running?.stop();
});

/** Sends bytes as they are, and returns what came back. */
function send(head: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(edgePort, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
    });
    socket.on('error', reject).on('close', () => resolve(text));
    socket.setTimeout(10_000, () => socket.destroy(new Error('no response')));
    socket.write(Buffer.from(head, 'latin1'));
  });
}
const get = (target: string, headers = ''): Promise<string> =>
  send(`GET ${target} HTTP/1.1\r\nHost: ${DOMAIN}\r\n${headers}Connection: close\r\n\r\n`);

async function search(filter: Record<string, string | number> = {}): Promise<Body> {
  const range = { from: new Date(Date.now() - 600_000).toISOString(), to: new Date(Date.now() + 60_000).toISOString() };
  const query = new URLSearchParams({ ...range, limit: '1000', ...filter } as Record<string, string>);
  return running.client.api<Body>('GET', `/sites/${siteId}/logs?${query}`);
}
const rows = async (filter?: Record<string, string | number>): Promise<Body[]> => (await search(filter)).entries;

test.serial('a request is found by its id within seconds, with what was asked and what it got', async (t) => {
  const answer = await get(
    '/some/page?size=5&secret=1',
    'User-Agent: tester\r\nX-Note: hello\r\nCookie: a=b\r\nX-Request-Id: 0123456789abcdef0123456789abcdef\r\n',
  );
  const [row] = await eventually(
    async () => {
      const found = await rows({ requestId: '0123456789abcdef0123456789abcdef' });
      return found.length > 0 && found;
    },
    { timeoutMs: FOUND_MS },
  );
  t.regex(answer, /200/);
  t.like(row, {
    siteId,
    clientIp: '127.0.0.1',
    method: 'GET',
    host: DOMAIN,
    path: '/some/page',
    query: 'size=5&secret=1',
    status: 200,
    sampleRate: 10_000,
    userAgent: 'tester',
    headers: [{ name: 'x-note', value: 'hello' }],
    upstreamAddr: `127.0.0.1:${origin.port}`,
    upstreamStatus: 200,
    scheme: 'http',
    httpVersion: '1.1',
    blockReason: null,
  });
  t.true(row!.bytesSent > 5 && row!.nodeName !== null);
  t.false(JSON.stringify(row).includes('a=b'));
});

test.serial('what clients send cannot break a row, a page or a spreadsheet', async (t) => {
  const long = `/${'x'.repeat(8191)}`;
  const hostile: [string, string][] = [
    ['/hostile-formula', 'User-Agent: =cmd|/c calc!A1\r\n'],
    ['/hostile-ansi', 'User-Agent: \x1b[31mred\r\n'],
    ['/hostile-bytes-\xff\xfe', 'User-Agent: \xff\xfe\r\n'],
    ['/hostile-comma', 'User-Agent: a,"b",c\r\n'],
    ['/hostile-id', 'X-Request-Id: constant\r\n'],
    ['/hostile-id', 'X-Request-Id: constant\r\n'],
  ];
  for (const [path, headers] of hostile) await get(path, headers);
  await get(long);
  // Each request has a row, but for those that the edge refused before it knew the site.
  const found = await eventually(
    async () => {
      const page = await rows({ path: '/hostile-' });
      return page.filter(({ path }) => path === '/hostile-id').length === 2 && page;
    },
    { timeoutMs: FOUND_MS },
  );
  t.is(new Set(found.map(({ id }) => id)).size, found.length);
  t.true(found.length >= 5);
  const [cut] = await eventually(async () => {
    const page = await rows({ path: '/xxxx' });
    return page.length > 0 && page;
  });
  t.is(cut!.path.length, 2048);
  const range = { from: new Date(Date.now() - 600_000).toISOString(), to: new Date().toISOString() };
  const { csv } = await running.client.api<Body>('GET', `/sites/${siteId}/logs/export?${new URLSearchParams(range)}`);
  t.true(csv.includes("'=cmd|/c calc!A1") && !/(^|,)=cmd/m.test(csv));
  t.true(csv.includes('"a,""b"",c"'));
});

test.serial('through kills of agent and Caddy, only the request under way may be missing', async (t) => {
  const answered: string[] = [];
  let over = false;
  let failed = 0;
  const visitor = (async () => {
    for (let number = 0; !over; number++) {
      const path = `/killed/${number}`;
      const answer = await get(path).catch(() => '');
      if (answer.startsWith('HTTP/1.1 200')) answered.push(path);
      else failed++;
      await delay(5);
    }
  })();
  for (let turn = 0; turn < KILLS; turn++) {
    for (const name of ['agent', 'caddy'] as const) {
      const child = () => edgeChildren(node.supervisor.pid)[name];
      const pid = await eventually(child, { timeoutMs: 60_000, what: `the ${name}` });
      const before = answered.length;
      await eventually(() => answered.length > before + 50, { timeoutMs: 60_000, what: 'traffic' });
      process.kill(pid, 'SIGKILL');
      await eventually(() => (child() ?? pid) !== pid, { timeoutMs: 60_000, what: `the next ${name}` });
    }
  }
  over = true;
  await visitor;
  await eventually(async () => (await get('/killed/last')).startsWith('HTTP/1.1 200'), {
    timeoutMs: 60_000,
    what: 'Caddy',
  });
  await eventually(async () => (await rows({ path: '/killed/last' })).length > 0, {
    timeoutMs: 60_000,
    what: 'the last row',
  });
  const all: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Body = await search({ path: '/killed/', ...(cursor && { cursor }) });
    all.push(...page.entries.map(({ path }: Body) => path));
    cursor = page.nextCursor;
    t.is(page.missingRows, 0);
  }
  const seen = new Set(all);
  const missing = answered.filter((path) => !seen.has(path));
  t.log({ answered: answered.length, failed, rows: all.length, missing });
  t.is(seen.size, all.length, 'no row is there twice');
  t.true(missing.length <= KILLS, missing.join());
});
