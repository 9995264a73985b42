// Request logs beside a proxy before the edge that counts each byte: each request has its row, and the rows say what passed;
// through kills of agent, Caddy, console and PostgreSQL only what is admitted is missing. The long form sends 100,000
// requests and kills more often.
import test from 'ava';
import knexFactory, { type Knex } from 'knex';
import { freePort } from '../../bench/lib/servers.ts';
import { edgeChildren } from '../../bin/lib/edge-process.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { trafficOrigin } from '../helpers/counted-traffic.ts';
import { type CountingProxy, countingProxy } from '../helpers/counting-proxy.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { LogVisitors } from '../helpers/log-visitors.ts';
import { orLong } from '../helpers/long-form.ts';
import type { Body } from '../helpers/resources.ts';
import { privateServers } from '../helpers/servers.ts';

const DOMAIN = 'agree.example';
const REQUESTS = orLong(2_000, 100_000);
const KILLS = orLong(1, 5);
const WORKERS = 8;
const LIMIT_MS = orLong(5, 30) * 60_000;
/** Requests that pass before the next kill. */
const BETWEEN = 100;

let own: Awaited<ReturnType<typeof privateServers>>;
let running: TestConsoleProcess;
let sql: Knex;
let node: EdgeNode;
let proxy: CountingProxy;
let origin: Awaited<ReturnType<typeof trafficOrigin>>;
let siteId: string;

test.before('a console, an edge node that logs all, and a proxy before it', async () => {
  own = await privateServers();
  own.postgres.keepRunning();
  const [port, nodePort, edgePort] = [await freePort(), await freePort(), await freePort()];
  running = await startTestConsoleProcess({
    servers: own,
    env: { PORT: String(port), NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}` },
  });
  running.child.keepRunning();
  sql = knexFactory({ client: 'pg', connection: running.databaseUrl, pool: { min: 0, max: 2 } });
  const { client } = running;
  const clusterId = (await client.api<Body>('GET', '/clusters')).items[0].id;
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  node = await startEdgeNode({ client, clusterId, listen: `127.0.0.1:${edgePort}`, kernelBans: 'off' });
  origin = await trafficOrigin();
  proxy = await countingProxy(edgePort);
  const input = { clusterId, domains: [DOMAIN], origins: [{ address: '127.0.0.1', port: origin.port }] };
  siteId = (await client.api<Body>('POST', '/sites', input)).site.id;
  await client.api('PUT', `/sites/${siteId}/logs/settings`, { sampleRate: 10_000 });
  // The first row that arrives says that the settings are in force.
  await eventually(async () => {
    await new LogVisitors(proxy.port, DOMAIN, 'first').ask().catch(() => undefined);
    return (await rowsOf('first')).paths.length > 0;
  });
  await proxy.idle();
});
test.after.always('stop', async (t) => {
  if (!t.passed) for (const line of node?.log().split('\n').slice(-40) ?? []) t.log(line);
  await proxy?.close();
  await node?.stop();
  await origin?.stop();
  await sql?.destroy();
  await running?.stop();
  await own?.stop();
});

/** Rows of requests below /name/, as the database has them. */
async function rowsOf(name: string): Promise<{ paths: string[]; sent: number; received: number }> {
  const { rows } = await sql.raw<{ rows: { path: string; sent: string; received: string }[] }>(
    `select path, bytes_sent as sent, request_bytes as received from request_log
      where site_id = ? and starts_with(path, ?)`,
    [siteId, `/${name}/`],
  );
  return {
    paths: rows.map(({ path }) => path),
    sent: rows.reduce((all, row) => all + Number(row.sent), 0),
    received: rows.reduce((all, row) => all + Number(row.received), 0),
  };
}

async function missingRows(): Promise<number> {
  const range = { from: new Date(Date.now() - 3_600_000).toISOString(), to: new Date().toISOString() };
  const page = await running.client.api<Body>('GET', `/sites/${siteId}/logs?${new URLSearchParams(range)}`);
  return page.missingRows;
}

test.serial('each request has one row, and rows say what a proxy before the edge saw', async (t) => {
  t.timeout(LIMIT_MS);
  const before = { up: proxy.up.total, down: proxy.down.total };
  const visitors = new LogVisitors(proxy.port, DOMAIN, 'exact');
  await visitors.run(WORKERS, () => visitors.asked >= REQUESTS);
  await proxy.idle();
  t.deepEqual(visitors.failures, []);
  await eventually(
    async () => {
      const [all] = await sql('request_log').where('site_id', siteId).whereLike('path', '/exact/%').count();
      return Number(all!.count) >= visitors.answered.length;
    },
    { timeoutMs: LIMIT_MS, everyMs: 500, what: 'all rows' },
  );
  const { paths, sent, received } = await rowsOf('exact');
  t.deepEqual(paths.toSorted(), visitors.answered.toSorted());
  t.is(sent, proxy.down.total - before.down);
  t.is(received, proxy.up.total - before.up);
  t.is(await missingRows(), 0);
});

type Victim = () => Promise<void>;
const child =
  (name: 'agent' | 'caddy'): Victim =>
  async () => {
    const pidOf = () => edgeChildren(node.supervisor.pid)[name];
    const pid = await eventually(pidOf, { timeoutMs: 120_000, what: `the ${name}` });
    process.kill(pid, 'SIGKILL');
    await eventually(() => (pidOf() ?? pid) !== pid, { timeoutMs: 120_000, what: `the next ${name}` });
  };
const VICTIMS: Readonly<Record<string, Victim>> = {
  agent: child('agent'),
  caddy: child('caddy'),
  async console() {
    const { pid } = running.child;
    process.kill(-pid, 'SIGKILL');
    const answers = async () =>
      running.child.pid !== pid && (await running.client.request('GET', '/api/v1/sites')).status < 500;
    await eventually(answers, { timeoutMs: 120_000, what: 'the console' });
  },
  async postgres() {
    const { pid } = own.postgres;
    process.kill(pid, 'SIGKILL');
    await eventually(() => own.postgres.pid !== pid, { timeoutMs: 120_000, what: 'the next PostgreSQL' });
    await eventually(() => sql.raw('select 1').then(() => true), { timeoutMs: 120_000, what: 'PostgreSQL' });
  },
};

test.serial('through kills of agent, Caddy, console and store only what is admitted is missing', async (t) => {
  t.timeout(LIMIT_MS);
  const visitors = new LogVisitors(proxy.port, DOMAIN, 'killed');
  let over = false;
  const traffic = visitors.run(WORKERS, () => over, 20);
  for (let turn = 0; turn < KILLS; turn++) {
    for (const [name, kill] of Object.entries(VICTIMS)) {
      const before = visitors.answered.length;
      await eventually(() => visitors.answered.length > before + BETWEEN, { timeoutMs: 120_000, what: 'traffic' });
      await kill();
      t.log(`${name} was killed after ${visitors.answered.length} requests`);
    }
  }
  over = true;
  await traffic;
  await eventually(
    async () => {
      await new LogVisitors(proxy.port, DOMAIN, 'last').ask().catch(() => undefined);
      return (await rowsOf('last')).paths.length > 0;
    },
    { timeoutMs: LIMIT_MS, what: 'the last row' },
  );
  const { paths } = await rowsOf('killed');
  const seen = new Set(paths);
  t.is(seen.size, paths.length, 'no row is there twice');
  const lost = visitors.answered.filter((path) => !seen.has(path)).length;
  const admitted = await missingRows();
  t.log({ answered: visitors.answered.length, failed: visitors.failures.length, rows: paths.length, lost, admitted });
  // Each kill of Caddy may take the rows of requests that were just ending.
  t.true(lost <= admitted + KILLS * WORKERS, `${lost} are missing, ${admitted} are admitted`);
});
