// Live updates: what changes is told once, in order, to everybody who watches, by any process, and never silently lost.
import { Ajv } from 'ajv';
import test from 'ava';
import { Redis } from 'ioredis';
import pg from 'pg';
import { TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { live, MAX_LIVE_IDS } from '../../contract/resources/live.ts';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { BrowserClient } from '../helpers/browser-client.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne, startTestFleet } from '../helpers/fleet.ts';
import { type LiveClient, requestLive, watchLive } from '../helpers/live-client.ts';
import { privateServers } from '../helpers/servers.ts';

const { email, password } = TEST_OPERATOR;

let own: Awaited<ReturnType<typeof privateServers>>;
let first: TestConsole;
let second: TestConsole;
let database: pg.Pool;
let redis: Redis;
let clusterId: string;
let count = 0;

test.before(async () => {
  own = await privateServers();
  first = await startTestConsole({ servers: own });
  second = await startTestConsole({
    servers: own,
    database: { url: first.databaseUrl },
    masterKey: first.env.SVC_MASTER_KEY!,
    redisPrefix: first.env.SVC_REDIS_PREFIX!,
  });
  database = new pg.Pool({ connectionString: first.databaseUrl, max: 2 });
  redis = new Redis(own.redisUrl);
  const cluster = await first.client.rpc<{ id: string }>('clusters.create', { name: 'live' });
  clusterId = cluster.id;
});

test.after.always(async () => {
  redis?.disconnect();
  await database?.end();
  await second?.stop();
  await first?.stop();
  await own?.stop();
});

const watch = (on: TestConsole = first, cursor?: string | null, cookie = first.client.cookie) =>
  watchLive(on.url, { cookie, ...(cursor === undefined ? {} : { cursor }) });

async function started(stream: Promise<LiveClient>): Promise<LiveClient> {
  const client = await stream;
  await eventually(() => firstTold(client) !== undefined);
  return client;
}

/** Type of the first line that says something: a stream may be kept open for a moment before. */
function firstTold({ lines }: LiveClient): string | undefined {
  return lines.find(({ type }) => type !== 'ping')?.type;
}

/** Leaves hints as a change does, and answers once they were told. */
async function hint(...keys: string[]): Promise<void> {
  await database.query("insert into outbox (topic, key) select 'live', unnest($1::text[])", [keys]);
}

/** Ends with everything relayed, so that nothing of an earlier test comes. */
async function quiet(): Promise<void> {
  await eventually(async () => (await database.query('select 1 from outbox')).rowCount === 0);
}

async function anotherSession(): Promise<BrowserClient> {
  const browser = new BrowserClient(first.url, 'http://localhost:3000');
  await browser.signIn({ email, password });
  return browser;
}

async function newSite(name: string): Promise<{ id: string; updatedAt: string }> {
  const answer = await first.client.rpc<{ site: { id: string; updatedAt: string } }>('sites.create', {
    clusterId,
    name,
    domains: [`${name}.example`],
    origins: [{ address: '8.8.8.8' }],
  });
  return answer.site;
}

test.serial('a line for each thing that happens to a site, its revision included', async (t) => {
  const stream = await started(watch());
  const site = await newSite(`site-${count++}`);
  await stream.told('sites', site.id);
  await stream.told('revisions', clusterId);
  await first.client.rpc('sites.setEnabled', { id: site.id, enabled: false, expectedUpdatedAt: site.updatedAt });
  await eventually(() => stream.ids('sites').filter((id) => id === site.id).length === 2);
  await stream.close();
  t.pass();
});

test.serial('a long job is told when it begins, and when it has ended', async (t) => {
  const day = 24 * 3600_000;
  const from = Math.floor(Date.now() / day) * day;
  const range = { from: new Date(from).toISOString(), to: new Date(from + day).toISOString() };
  const early = await started(watch());
  const { id } = await first.client.api<{ id: string }>('POST', '/usage/exports', range);
  await early.told('jobs', id);
  await early.close();
  // Whoever looks before its end is told again.
  const late = await started(watch());
  const { state } = await first.client.api<{ state: string }>('GET', `/jobs/${id}`);
  if (state !== 'done') await late.told('jobs', id);
  await late.close();
  t.pass();
});

test.serial('bans, settings and nodes are told by topic and id, never with data', async (t) => {
  const stream = await started(watch());
  await first.client.rpc('bans.create', {
    scope: 'platform',
    cidr: '198.51.100.7',
    durationSeconds: 600,
    reason: 'other',
  });
  await eventually(() => stream.events.find((event) => event.topic === 'bans'));
  await first.client.rpc('regions.create', { name: 'live', code: 'lv' });
  await stream.told('settings', 'region');
  const text = JSON.stringify(stream.lines);
  t.false(text.includes('198.51.100.7'));
  await stream.close();
});

test.serial('a node that comes, applies what it is told and goes is told by its id', async (t) => {
  const stream = await started(watch());
  const fleet = await startTestFleet(first, clusterId, 1);
  const [{ id: nodeId }] = (await first.client.rpc<{ items: [{ id: string }] }>('nodes.list', { clusterId })).items;
  await eventually(() => stream.events.find(({ topic }) => topic === 'gauges'));
  await stream.told('nodes', nodeId);
  // Everything is where it should be: what comes now is of the next change.
  await eventually(async () => {
    const node = await first.client.rpc<{ targetRevision: string; appliedRevision: string }>('nodes.get', {
      id: nodeId,
    });
    return node.targetRevision === node.appliedRevision;
  });
  // Held back, so that what is saved and what is applied are not told in one line.
  const node = fleet.nodes[0]!;
  const told = (topic: 'nodes' | 'revisions', id: string) => stream.ids(topic).filter((each) => each === id).length;
  node.holdAcks(true);
  const revisions = told('revisions', clusterId);
  await newSite(`site-${count++}`);
  await eventually(() => told('revisions', clusterId) > revisions, { what: 'the publication' });
  const [saved, nodes] = [told('revisions', clusterId), told('nodes', nodeId)];
  node.holdAcks(false);
  await eventually(() => told('revisions', clusterId) > saved && told('nodes', nodeId) > nodes, { what: 'its end' });

  node.holdAcks(true);
  const bans = stream.ids('bans').length;
  const since = (id: string) => stream.ids('bans').slice(bans).includes(id);
  await first.client.rpc('bans.create', {
    scope: 'platform',
    cidr: '198.51.100.8',
    durationSeconds: 600,
    reason: 'other',
  });
  await eventually(() => since('*'), { what: 'the ban' });
  node.holdAcks(false);
  await eventually(() => since(clusterId), { what: 'its enforcement' });

  await fleet.stop();
  await quiet();
  const before = told('nodes', nodeId);
  await eventually(
    async () => {
      if (told('nodes', nodeId) > before) return true;
      // A last report may still be written after this.
      await database.query(
        `update node_state set last_seen_at = now() - interval '44 seconds'
          where node_id = $1 and last_seen_at > now() - interval '40 seconds'`,
        [nodeId],
      );
      return false;
    },
    { what: 'the silence of the node' },
  );
  t.deepEqual([...new Set(stream.ids('nodes'))], [nodeId]);
  await stream.close();
});

test.serial('levels of sites are told when they change, events whenever they come', async (t) => {
  const { id: siteId } = await newSite(`site-${count++}`);
  const identity = await enrollOne(first, clusterId, ['bans-v1', 'challenge-v1']);
  const node = connectAs(first, identity);
  t.teardown(() => node.destroy());
  await quiet();
  const stream = await started(watch());
  const report = (level: number, events: object[] = []) =>
    node.call('reportSecurity', { events, sites: level > 0 ? [{ siteId, level, paths: [] }] : [], hasState: true });
  const event = {
    id: 'live-1',
    siteId,
    occurredAtMs: BigInt(Date.now()),
    kind: SecurityEventKind.IP_BANNED,
    address: '203.0.113.7',
    level: 2,
    previousLevel: 2,
  };
  const told = async () => {
    await hint('settings checked');
    checks++;
    await eventually(() => stream.ids('settings').filter((id) => id === 'checked').length === checks);
    return [stream.ids('incidents').length, stream.ids('security').length];
  };
  let checks = 0;
  await report(2);
  await stream.told('incidents', siteId);
  t.deepEqual(await told(), [1, 1]);
  await report(2);
  t.deepEqual(await told(), [1, 1], 'the same again');
  await report(2, [event]);
  t.deepEqual(await told(), [1, 2], 'an event');
  await report(0);
  t.deepEqual(await told(), [2, 3], 'back to normal');
  t.deepEqual([...new Set(stream.ids('incidents'))], [siteId]);
  await stream.close();
});

test.serial('every line is one of the contract', async (t) => {
  const validate = new Ajv({ strict: false }).compile(live.watch.line);
  const stream = await started(watch());
  await hint('nodes n1', 'gauges');
  await stream.told('nodes', 'n1');
  await stream.close();
  for (const line of stream.lines) t.true(validate(line), JSON.stringify([line, validate.errors]));
});

test.serial('what a thousand nodes report within a moment is a line or few', async (t) => {
  await quiet();
  const stream = await started(watch());
  const before = stream.lines.length;
  await hint(...Array.from({ length: 1000 }, (_, index) => `nodes many-${index}`));
  await stream.told('nodes', '*');
  await quiet();
  // Two relays may share them: one can have told of some before the other tells of the rest.
  const lines = stream.lines.slice(before).filter((line) => line.type === 'events').length;
  t.true(lines <= 3, `${lines} lines`);
  t.true(stream.ids('nodes').length <= lines * MAX_LIVE_IDS, `${stream.ids('nodes').length} ids`);
  await stream.close();
});

test.serial('every process tells the same in the same order, each thing once', async (t) => {
  await quiet();
  const streams = await Promise.all([started(watch(first)), started(watch(second))]);
  const told = Array.from({ length: 30 }, (_, index) => `order-${index}`);
  for (const id of told) await hint(`sites ${id}`);
  await quiet();
  await hint('settings ordered');
  for (const stream of streams) await stream.told('settings', 'ordered');
  // Of relays that work at the same time one can be faster with a later row: the stream has one order for all.
  t.deepEqual(streams[0]!.ids('sites'), streams[1]!.ids('sites'));
  t.deepEqual(streams[0]!.ids('sites').toSorted(), told.toSorted());
  for (const stream of streams) await stream.close();
});

test.serial(
  'a stream goes on from its cursor, at the same process or another, without loss or repetition',
  async (t) => {
    await quiet();
    const all: string[] = [];
    const wanted = Array.from({ length: 24 }, (_, index) => `resume-${index}`);
    let cursor: string | null = null;
    let stream = await started(watch(first));
    cursor = stream.cursor;
    for (const [index, id] of wanted.entries()) {
      await hint(`sites ${id}`);
      if (index % 4 !== 3) continue;
      // Closed while events are on their way: what it had not seen comes after the cursor.
      cursor = stream.cursor;
      all.push(...stream.ids('sites'));
      const seen = stream.lines.length;
      await stream.close();
      t.is(stream.lines.length, seen);
      stream = await started(watch(index % 8 === 3 ? second : first, cursor));
      t.is(firstTold(stream), 'start');
    }
    await eventually(() => all.length + stream.ids('sites').length >= wanted.length);
    await quiet();
    await hint('settings resumed');
    await stream.told('settings', 'resumed');
    t.deepEqual([...all, ...stream.ids('sites')].toSorted(), wanted.toSorted());
    await stream.close();
  },
);

test.serial('a process that has just begun goes on from cursors of before', async (t) => {
  const stream = await started(watch());
  await hint('sites before-restart');
  await stream.told('sites', 'before-restart');
  const { cursor } = stream;
  await stream.close();
  await hint('sites while-away');
  await quiet();
  const third = await startTestConsole({
    servers: own,
    database: { url: first.databaseUrl },
    masterKey: first.env.SVC_MASTER_KEY!,
    redisPrefix: first.env.SVC_REDIS_PREFIX!,
  });
  try {
    const again = await started(watch(third, cursor));
    await again.told('sites', 'while-away');
    t.is(firstTold(again), 'start');
    t.deepEqual(again.ids('sites'), ['while-away']);
    await again.close();
  } finally {
    await third.stop();
  }
});

test.serial('a cursor that is too old, or of another stream, begins with a reset', async (t) => {
  for (const cursor of ['1-0', '999999999999999-0']) {
    const stream = await started(watch(first, cursor));
    t.is(firstTold(stream), 'reset', cursor);
    await hint('sites after-reset');
    await stream.told('sites', 'after-reset');
    await stream.close();
  }
});

test.serial('after FLUSHALL everybody is told to read again, and what comes then arrives', async (t) => {
  const streams = await Promise.all([started(watch(first)), started(watch(second))]);
  const old = streams[0]!.cursor;
  await redis.flushall();
  for (const stream of streams) await stream.line('reset');
  await hint('sites after-flush');
  for (const stream of streams) {
    await stream.told('sites', 'after-flush');
    await stream.close();
  }
  const late = await started(watch(second, old));
  t.is(firstTold(late), 'reset');
  await late.close();
});

test.serial('after Redis was away everybody is told to read again', async (t) => {
  const stream = await started(watch());
  // As a restart: every connection breaks.
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await stream.line('reset');
  // A ping is due at any time.
  const types = stream.lines.map(({ type }) => type).filter((type) => type !== 'ping');
  t.deepEqual(types.slice(types.indexOf('pause')).slice(0, 2), ['pause', 'reset']);
  await hint('sites after-restart');
  await stream.told('sites', 'after-restart');
  await stream.close();
  t.pass();
});

test.serial('it answers like the rest of /rpc: POST alone, with the header and a session', async (t) => {
  const cookie = first.client.cookie;
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE']) {
    t.is((await first.client.request(method, '/rpc/live/watch', undefined, { cookie })).status, 404, method);
  }
  const ask = async (options: Parameters<typeof requestLive>[1]) => {
    const { response } = await requestLive(first.url, options);
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  t.deepEqual(await ask({ cookie, headers: { 'x-csrf-token': '' } }), [403, 'CSRF_HEADER_REQUIRED']);
  t.deepEqual(await ask({ cookie: '' }), [401, 'UNAUTHORIZED']);
  t.deepEqual(await ask({ cookie: '', headers: { 'x-api-key': first.client.accessKey } }), [401, 'UNAUTHORIZED']);
  for (const cursor of ['', 'x', '1', '-', '1-', '1-2-3', '9'.repeat(40), 7, {}] as string[]) {
    t.deepEqual(await ask({ cookie, cursor }), [400, 'BAD_REQUEST'], String(cursor));
  }
  const api = await first.client.request<{ error: string }>('POST', '/api/v1/live/watch', {});
  t.is(api.status, 404);
});

test.serial('no proxy may collect or keep the answer', async (t) => {
  const stream = await started(watch());
  const { headers } = stream.response;
  t.is(headers.get('x-accel-buffering'), 'no');
  t.is(headers.get('cache-control'), 'no-store');
  t.is(headers.get('content-type'), 'application/x-ndjson; charset=utf-8');
  t.is(headers.get('content-length'), null);
  await stream.close();
});

// How a session can end, and that the stream ends with it on every process.
const ENDINGS: [string, (browser: BrowserClient) => Promise<unknown>][] = [
  ['sign-out', (browser) => browser.auth('POST', '/sign-out', {})],
  ['another sign-in in the same browser', (browser) => browser.signIn({ email, password })],
  [
    'its expiry',
    () =>
      database.query(
        "update session set expires_at = now() - interval '1 second' where user_agent is distinct from 'kept' and id <> (select id from session order by created_at limit 1)",
      ),
  ],
];

for (const [what, end] of ENDINGS) {
  test.serial(`a stream ends with its session: ${what}`, async (t) => {
    const browser = await anotherSession();
    const streams = await Promise.all([
      started(watch(first, null, browser.cookie)),
      started(watch(second, null, browser.cookie)),
    ]);
    const other = await started(watch());
    await end(browser);
    for (const stream of streams) {
      t.deepEqual(await stream.line('end'), { type: 'end', reason: 'session' });
      await stream.ended;
    }
    await hint('sites others');
    await other.told('sites', 'others');
    await other.close();
  });
}

test.serial('a stream never prolongs its session', async (t) => {
  const browser = await anotherSession();
  const [row] = (
    await database.query(
      `update session set refreshed_at = now() - interval '2 days', expires_at = now() + interval '5 days'
        where id = (select id from session order by created_at desc limit 1) returning id, expires_at`,
    )
  ).rows;
  const stream = await started(watch(first, null, browser.cookie));
  await hint('sites not-prolonged');
  await stream.told('sites', 'not-prolonged');
  t.is(stream.response.headers.get('set-cookie'), null);
  await stream.close();
  const after = await database.query('select expires_at from session where id = $1', [row.id]);
  t.deepEqual(after.rows[0].expires_at, row.expires_at);
});

test.serial('a session has eight streams at a time, and others are not concerned', async (t) => {
  const browser = await anotherSession();
  const cookie = browser.cookie;
  const streams = await Promise.all(Array.from({ length: 8 }, () => started(watch(first, null, cookie))));
  const { response } = await requestLive(first.url, { cookie });
  t.is(response.status, 429);
  t.is(response.headers.get('retry-after'), '30');
  const body = (await response.json()) as { code: string; data: { limit: number } };
  t.is(body.code, 'LIVE_STREAM_LIMIT');
  t.is(body.data.limit, 8);
  await (await started(watch())).close();
  await streams[0]!.close();
  const again = await eventually(() => watch(first, null, cookie).catch(() => undefined));
  for (const stream of [...streams.slice(1), again]) await stream.close();
});

test.serial('a process that stops ends its streams first, and says so', async (t) => {
  const stopping = await startTestConsole({
    servers: own,
    database: { url: first.databaseUrl },
    masterKey: first.env.SVC_MASTER_KEY!,
    redisPrefix: first.env.SVC_REDIS_PREFIX!,
  });
  const stream = await started(watch(stopping));
  const { cursor } = stream;
  await stopping.stop();
  await stream.ended;
  t.deepEqual(stream.last, { type: 'end', reason: 'stopping' });
  await hint('sites elsewhere');
  const again = await started(watch(second, cursor));
  await again.told('sites', 'elsewhere');
  await again.close();
});

test.serial('a new password ends every other stream', async (t) => {
  const browser = await anotherSession();
  const stream = await started(watch(second, null, first.client.cookie));
  await browser.auth('POST', '/change-password', { currentPassword: password, newPassword: `${password}!` });
  t.deepEqual(await stream.line('end'), { type: 'end', reason: 'session' });
});
