// Usage and statistics beside a proxy before the edge that counts each byte, while agent, Caddy and console are killed: a few kills and
// some seconds of traffic. COUNT_KILLS says how often each is killed; with it 100,000 requests come before, and the ends
// of windows are waited for.
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import knexFactory, { type Knex } from 'knex';
import { freePort } from '../../bench/lib/servers.ts';
import { edgeChildren } from '../../bin/lib/edge-process.ts';
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import { startTestConsoleProcess, type TestConsoleProcess } from '../helpers/console.ts';
import { type Sent, Traffic, trafficOrigin } from '../helpers/counted-traffic.ts';
import { type CountingProxy, countingProxy } from '../helpers/counting-proxy.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import type { Body } from '../helpers/resources.ts';

const DRILL_KILLS = process.env.COUNT_KILLS === undefined ? undefined : Number(process.env.COUNT_KILLS);
const KILLS = DRILL_KILLS ?? 1;
/** Of agent and console without Caddy. */
const HARMLESS_KILLS = Math.ceil(KILLS / 4);
const REQUESTS = DRILL_KILLS === undefined ? 2000 : 100_000;
const WORKERS = 8;
/** What a client does not read to its end; with kills, all of it has room between Caddy and the proxy. */
const ABORTED_BYTES = 300_000;
const SMALL_BYTES = 40_000;
const DOMAINS = ['a.example', 'b.example', 'c.example'];
/** A gap is told in seconds, and what the proxy has passed on is counted a moment later. */
const AROUND_GAP_MS = 2000;
const MINUTE_MS = 60_000;
const WINDOW_MS = 300_000;

let consoleProcess: TestConsoleProcess;
let sql: Knex;
let node: EdgeNode;
let edgePort: number;
let proxy: CountingProxy;
let origin: Awaited<ReturnType<typeof trafficOrigin>>;
/** By domain; of no site: "". */
const siteIds = new Map([['', '']]);
const begun = Date.now();

test.before('a console, an edge node and a proxy before it', async () => {
  const [port, nodePort] = [await freePort(), await freePort()];
  edgePort = await freePort();
  consoleProcess = await startTestConsoleProcess({
    env: { PORT: String(port), NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}` },
  });
  consoleProcess.child.keepRunning();
  sql = knexFactory({ client: 'pg', connection: consoleProcess.databaseUrl, pool: { min: 0, max: 2 } });
  const { client } = consoleProcess;
  const clusterId = (await client.api<Body>('GET', '/clusters')).items[0].id;
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  node = await startEdgeNode({ client, clusterId, listen: `127.0.0.1:${edgePort}`, kernelBans: 'off' });
  origin = await trafficOrigin();
  proxy = await countingProxy(edgePort);
  for (const domain of DOMAINS) {
    const input = { clusterId, domains: [domain], origins: [{ address: '127.0.0.1', port: origin.port }] };
    siteIds.set(domain, (await client.api<Body>('POST', '/sites', input)).site.id);
  }
  await eventually(async () => (await sql('node_state').first('revision'))?.revision === (await head()));
});
test.after.always('stop', async (t) => {
  if (!t.passed) for (const line of node?.log().split('\n').slice(-40) ?? []) t.log(line);
  await proxy?.close();
  await node?.stop();
  await origin?.stop();
  await sql?.destroy();
  await consoleProcess?.stop();
});

const head = async (): Promise<string> => (await sql('cluster_head').first('revision')).revision;

interface Counted {
  requests: number;
  received: number;
  sent: number;
}
const NOTHING: Counted = { requests: 0, received: 0, sent: 0 };
const plus = (a: Counted, b: Counted): Counted => ({
  requests: a.requests + b.requests,
  received: a.received + b.received,
  sent: a.sent + b.sent,
});

/** What the console has, by site. */
async function counted(): Promise<Map<string, Counted>> {
  const { rows } = await sql.raw<{ rows: { id: string; requests: string; received: string; sent: string }[] }>(
    `select site_id as id, sum(requests) as requests, sum(bytes_received) as received, sum(bytes_sent) as sent
       from usage_minute group by site_id`,
  );
  return new Map(
    rows.map(({ id, requests, received, sent }) => [
      id,
      { requests: Number(requests), received: Number(received), sent: Number(sent) },
    ]),
  );
}
const sum = (all: ReadonlyMap<string, Counted>): Counted => [...all.values()].reduce(plus, NOTHING);

/** A drain that the agent does when it is told to end; it is started again. */
async function drainNow(): Promise<void> {
  const before = (await eventually(() => node.pids())).agent;
  process.kill(before, 'SIGTERM');
  await eventually(() => (node.pids()?.agent ?? before) !== before, { timeoutMs: 180_000, what: 'the agent' });
}

/** From its return to its next death, ms; what starts them again gives up on a console that dies more often. */
const LIVES =
  DRILL_KILLS === undefined
    ? { agent: [500, 2500], caddy: [6000, 8000], console: [500, 2500] }
    : { agent: [1000, 10_000], caddy: [1000, 30_000], console: [13_000, 40_000] };

interface Victim {
  name: keyof typeof LIVES;
  /** Ends it with SIGKILL, and resolves when it is back; answers when it died. */
  kill(): Promise<number>;
}
const killChild = (name: 'agent' | 'caddy'): Victim => ({
  name,
  kill: async () => {
    // One of them may be away for a minute, which does not spare the other.
    const running = () => edgeChildren(node.supervisor.pid)[name];
    const pid = await eventually(running, { timeoutMs: 180_000, what: `the ${name}` });
    const at = Date.now();
    process.kill(pid, 'SIGKILL');
    await eventually(() => (running() ?? pid) !== pid, { timeoutMs: 180_000, what: `the next ${name}` });
    return at;
  },
});
const AGENT = killChild('agent');
const CADDY = killChild('caddy');
const CONSOLE: Victim = {
  name: 'console',
  kill: async () => {
    const { child, client } = consoleProcess;
    const { pid } = child;
    const at = Date.now();
    process.kill(-pid, 'SIGKILL');
    const answers = async () => child.pid !== pid && (await client.request('GET', '/api/v1/sites')).status < 500;
    await eventually(answers, { timeoutMs: 180_000, what: 'the console' });
    return at;
  },
};

interface Death {
  name: Victim['name'];
  at: number;
  backAt: number;
}

/** Each victim dies so many times, at random ones; resolves when all are back. */
async function killAll(victims: readonly Victim[], times: number): Promise<Death[]> {
  const deaths: Death[] = [];
  await Promise.all(
    victims.map(async ({ name, kill }) => {
      const [shortest, longest] = LIVES[name] as [number, number];
      for (let turn = 0; turn < times; turn++) {
        await delay(shortest + Math.random() * (longest - shortest));
        deaths.push({ name, at: await kill(), backAt: Date.now() });
      }
    }),
  );
  return deaths;
}

/** Traffic while the victims die so many times each; answers what was sent and how they died. */
async function traffic(
  victims: readonly Victim[],
  times: number,
  abortedBytes: number,
): Promise<{ visitors: Traffic; deaths: Death[] }> {
  const visitors = new Traffic({ port: proxy.port, domains: DOMAINS, abortedBytes });
  let over = false;
  const enough = () => over && (victims.length > 0 || visitors.requests >= REQUESTS);
  // Without kills as fast as it goes.
  const running = visitors.run(WORKERS, victims.length === 0 ? 0 : 120, enough);
  try {
    const deaths = await killAll(victims, times);
    over = true;
    await running;
    await proxy.idle();
    return { visitors, deaths };
  } finally {
    over = true;
  }
}

const LIMIT_MS = DRILL_KILLS === undefined ? 9 * MINUTE_MS : 90 * MINUTE_MS;

/** The console has, of each site, all that it was sent, and of all what the proxy saw, to the byte. */
async function isExact(t: ExecutionContext, visitors: Traffic, before: Before): Promise<void> {
  t.deepEqual(visitors.failures, []);
  const saw = { received: proxy.up.total - before.up, sent: proxy.down.total - before.down };
  let now = new Map<string, Counted>();
  const since = (id: string): Counted => {
    const [after, then] = [now.get(id) ?? NOTHING, before.counted.get(id) ?? NOTHING];
    return {
      requests: after.requests - then.requests,
      received: after.received - then.received,
      sent: after.sent - then.sent,
    };
  };
  const all = () => [...siteIds.values()].map(since).reduce(plus, NOTHING);
  await drainNow();
  await eventually(
    async () => {
      now = await counted();
      return all().received >= saw.received && all().sent >= saw.sent;
    },
    { timeoutMs: 240_000, everyMs: 500, what: 'all counts to be there' },
  ).catch((error) => t.log(String(error)));
  t.like(all(), saw);
  for (const [domain, id] of siteIds) {
    const { requests, bytes }: Sent = visitors.sent.get(domain)!;
    t.like(since(id), { requests, received: bytes }, domain);
  }
}

interface Before {
  up: number;
  down: number;
  counted: ReadonlyMap<string, Counted>;
}
/** Nothing is under way. */
const before = async (): Promise<Before> => ({
  up: proxy.up.total,
  down: proxy.down.total,
  counted: await counted(),
});

test.serial(
  'counts are what a proxy before the edge saw, to the byte, in both directions and for each site',
  async (t) => {
    t.timeout(LIMIT_MS);
    const from = await before();
    const { visitors } = await traffic([], 0, ABORTED_BYTES);
    await isExact(t, visitors, from);
  },
);

test.serial('killing the agent and the console loses nothing and counts nothing twice', async (t) => {
  t.timeout(LIMIT_MS);
  const from = await before();
  const { visitors } = await traffic([AGENT, CONSOLE], HARMLESS_KILLS, ABORTED_BYTES);
  await isExact(t, visitors, from);
  t.deepEqual(await sql('usage_gap'), []);
});

test.serial('killing Caddy loses at most a second, which is told as a gap; completeUntil moves on', async (t) => {
  t.timeout(LIMIT_MS);
  const from = sum((await before()).counted);
  const passed = { received: proxy.up.total, sent: proxy.down.total };
  const { deaths } = await traffic(DRILL_KILLS === undefined ? [CADDY] : [CADDY, AGENT, CONSOLE], KILLS, SMALL_BYTES);
  const ended = Date.now();
  // With this watermark all that was counted until now is there.
  await delay(MINUTE_MS + 1000 - (ended % MINUTE_MS));
  await drainNow();
  await eventually(
    async () => {
      const { watermark } = await sql('usage_cursor').where({ node_id: node.nodeId }).first('watermark');
      return watermark.getTime() >= ended;
    },
    { timeoutMs: 8 * MINUTE_MS, everyMs: 500, what: 'the watermark' },
  );
  const gaps: { from: number; to: number }[] = (await sql('usage_gap').where({ reason: 'told' })).map((gap) => ({
    from: gap.starts_at.getTime(),
    to: gap.ends_at.getTime(),
  }));
  const killed = deaths.filter(({ name }) => name === 'caddy');
  for (const { at } of killed) {
    const told = gaps.some((gap) => gap.from <= at + AROUND_GAP_MS && gap.to >= at - AROUND_GAP_MS);
    t.true(told, `a kill at ${new Date(at).toISOString()} is in no gap: ${JSON.stringify(gaps)}`);
  }
  const after = sum(await counted());
  for (const [what, direction] of [
    ['received', proxy.up],
    ['sent', proxy.down],
  ] as const) {
    const lost = direction.total - passed[what] - (after[what] - from[what]);
    t.true(lost >= 0, `${what}: ${-lost} more than the proxy saw`);
    const inGaps = direction.within(gaps.map((gap) => [gap.from - AROUND_GAP_MS, gap.to + AROUND_GAP_MS]));
    t.true(lost <= inGaps, `${what}: ${lost} are lost, and ${inGaps} passed in the gaps`);
    // What happens within a second of real time is asked of a machine that does nothing else.
    const seconds = killed.reduce(
      (all, { at, backAt }) => all + direction.largestSecond(at - 2000, at) + direction.within([[at, backAt]]),
      0,
    );
    t.log(`${what}: ${direction.total - passed[what]} passed, ${lost} lost, ${seconds} in the largest seconds`);
    if (DRILL_KILLS !== undefined) t.true(lost <= seconds, what);
  }
});

test.serial('statistics answer these sums, of each site and of all; lists name what was asked for', async (t) => {
  t.timeout(LIMIT_MS);
  const visitors = new Traffic({ port: proxy.port, domains: DOMAINS, abortedBytes: SMALL_BYTES });
  for (const domain of DOMAINS) t.is(await visitors.ask(domain), 200);
  await proxy.idle();
  await drainNow();
  const { client } = consoleProcess;
  const statistics = async (query: string): Promise<Counted & { statuses: number }> => {
    const { totals, statuses } = await client.api<Body>('GET', `/analytics/traffic?${query}`);
    return {
      requests: totals.requests,
      received: totals.bytesReceived,
      sent: totals.bytesSent,
      statuses: statuses.reduce((all: number, each: Body) => all + each.requests, 0),
    };
  };
  const sites = [...siteIds.values()].filter((id) => id !== '');
  const statusesOf = async (ids: readonly string[]): Promise<number> => {
    const { rows } = await sql.raw<{ rows: { n: number }[] }>(
      `select coalesce(sum(value::numeric), 0)::float8 as n from usage_minute, jsonb_each_text(statuses)
        where site_id = any(?)`,
      [ids as never],
    );
    return rows[0]!.n;
  };
  const shown = async (ids: readonly string[]) => {
    const all = await counted();
    return { ...ids.map((id) => all.get(id) ?? NOTHING).reduce(plus, NOTHING), statuses: await statusesOf(ids) };
  };
  // Points of one and of five minutes are summed in ways of their own.
  for (const range of ['6h', ...(DRILL_KILLS === undefined ? ['1h'] : [])]) {
    for (const [query, ids] of [...sites.map((id) => [`&siteId=${id}`, [id]] as const), ['', sites] as const]) {
      let pair: unknown[] = [];
      await eventually(
        async () => {
          pair = [await statistics(`range=${range}${query}`), await shown(ids)];
          return isDeepStrictEqual(pair[0], pair[1]);
        },
        { timeoutMs: 3 * MINUTE_MS, everyMs: 500, what: `statistics of ${range}${query}` },
      ).catch((error) => t.log(String(error)));
      t.deepEqual(pair[0], pair[1], `${range}${query}`);
    }
  }
  for (const [domain, siteId] of [...siteIds].filter(([, id]) => id !== '')) {
    const { items } = await eventually(
      async () => {
        const answer = await client.api<Body>('GET', `/analytics/top-requests?range=6h&siteId=${siteId}`);
        return answer.items.length > 0 && answer;
      },
      { timeoutMs: 5 * MINUTE_MS, everyMs: 500, what: `the list of ${domain}` },
    );
    t.deepEqual(
      items.map(({ value }: Body) => value),
      [`${domain}/`],
    );
    t.true(items[0].requests > 0 && items[0].requests <= (await counted()).get(siteId)!.requests, domain);
  }
});

test.serial('GET /usage answers these sums', async (t) => {
  t.timeout(LIMIT_MS);
  const all = await counted();
  all.delete('');
  let back = 0;
  if (DRILL_KILLS === undefined) {
    // As if it had been an hour ago: its windows are over.
    back = 3_600_000;
    await sql.transaction(async (trx) => {
      await trx.raw(`update usage_minute set minute = minute - interval '1 hour'`);
      await trx.raw(
        `insert into usage_dirty select distinct date_bin('5 minutes', minute, '2000-01-01 00:00:00+00') from usage_minute
         on conflict (window_start) do update set generation = usage_dirty.generation + 1`,
      );
    });
    await rollUpUsage({ pools: { api: sql } as Parameters<typeof rollUpUsage>[0]['pools'] });
  }
  const window = (at: number) => Math.floor(at / WINDOW_MS) * WINDOW_MS;
  const [from, to] = [window(begun) - back, window(Date.now()) + WINDOW_MS - back];
  const iso = (at: number) => new Date(at).toISOString();
  const { client } = consoleProcess;
  const list = () => client.api<Body>('GET', `/usage?from=${iso(from)}&to=${iso(to)}&limit=5000`);
  const { items } = await eventually(
    async () => {
      const answer = await list();
      return (DRILL_KILLS === undefined || Date.parse(answer.completeUntil) >= to) && answer;
    },
    { timeoutMs: 20 * MINUTE_MS, everyMs: 2000, what: 'usage to be complete' },
  );
  const answered = new Map<string, Counted>();
  for (const { siteId, requests, bytesReceived, bytesSent } of items) {
    const more = { requests: Number(requests), received: Number(bytesReceived), sent: Number(bytesSent) };
    answered.set(siteId, plus(answered.get(siteId) ?? NOTHING, more));
  }
  t.deepEqual(Object.fromEntries(answered), Object.fromEntries(all));
});
