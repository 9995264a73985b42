// The spool of an agent against a console: offline, late, twice, and a console that was put back.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { ServerClock } from '../../agents/edge/lib/server-clock.ts';
import { drainToSpool } from '../../agents/edge/stats/drain.ts';
import { Spool } from '../../agents/edge/stats/spool.ts';
import { openSpoolFolder } from '../../agents/edge/stats/spool-files.ts';
import { createLog } from '../../agents/kit/log.ts';
import { Backlog, backlogCounts } from '../../bench/fleet/backlog.ts';
import { copySites } from '../../bench/lib/copy-sites.ts';
import { DrainStatsResponseSchema } from '../../proto/gen/svc/edge/v1/edge_pb.js';
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { type ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

const log = createLog('error', {}, () => undefined);

let running: TestConsole;
let api: Api;
let siteId: string;
let node: ReportingNode;
/** Of the spool; the first of them holds the others. */
let folder: string;
let root: string;
let drained = 0n;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  ({ siteId, node } = await servedSite(running, api));
  folder = mkdtempSync(join(tmpdir(), 'svc-spool-'));
  root = folder;
});
test.after.always('stop', async () => {
  node?.stop();
  await running?.stop();
  rmSync(root, { recursive: true, force: true });
});

/** The agent's spool after a start. */
const open = (): Spool =>
  new Spool({ files: openSpoolFolder(folder, 'node').files, log, now: () => Math.floor(Date.now() / 1000) });

/** One drain with this many requests in a minute of two hours ago, on a machine whose clock is wrong by so much. */
async function count(spool: Spool, requests: bigint, wrongMs = 0): Promise<void> {
  const wall = () => Date.now() + wrongMs;
  const clock = new ServerClock({ wall, monotonic: () => performance.now() });
  clock.observe(BigInt(Date.now()));
  const drainStats = async (acknowledged: bigint, offsetMs: number) => {
    if (acknowledged === drained + 1n) return create(DrainStatsResponseSchema);
    // The data plane has the machine's clock and what it is told of the console's.
    const minute = BigInt(Math.floor((wall() + offsetMs) / 60_000) * 60 - 7200);
    const minutes = [{ siteId, minute, requests, bytesSent: requests, bytesReceived: 1n }];
    return create(DrainStatsResponseSchema, { sequence: drained + 1n, minutes });
  };
  await drainToSpool({ client: { drainStats }, spool, offsetMs: () => clock.offsetMs(), log, now: wall });
  drained += 1n;
}

const report = async (batch: object): Promise<bigint> =>
  (await node.connection.call('reportStats', batch)).acknowledged;

/** Sends all there is, each batch so many times. */
async function send(spool: Spool, times = 1): Promise<void> {
  if (spool.unconfirmed) spool.confirm(await report({ sequence: 0n }));
  for (let next = spool.next(); next; next = spool.next()) {
    let answer = 0n;
    for (let time = 0; time < times; time++) answer = await report(next.batch);
    if (!spool.acknowledge(next.batch.sequence, answer)) throw new Error('the console does not take it');
  }
}

const cursor = async (): Promise<{ sequence: string; watermark: Date }> =>
  (await api.sql('usage_cursor').where({ node_id: node.identity.nodeId }))[0];
const stored = async (): Promise<number> => {
  const rows = await api.sql('site_minute').where({ site_id: siteId }).select('requests');
  return rows.reduce((sum, { requests }) => sum + Number(requests), 0);
};

/** What an operator is told. */
const range = () => {
  const window = Math.floor(Date.now() / 300_000) * 300_000;
  const iso = (at: number) => new Date(at).toISOString();
  return `from=${iso(window - 4 * 3_600_000)}&to=${iso(window + 300_000)}`;
};
async function told(): Promise<number> {
  await rollUpUsage(running.running.runtime);
  const { items } = await api.ok('GET', `/usage?${range()}&siteId=${siteId}`);
  return items.reduce((sum: number, { requests }: { requests: string }) => sum + Number(requests), 0);
}

test.serial('what was counted while the console was away is stored once, however often it is sent', async (t) => {
  const offline = open();
  await count(offline, 5n);
  await count(offline, 7n);
  const again = open();
  await count(again, 11n);
  await send(again, 3);
  t.is(await stored(), 23);
  t.is((await cursor()).sequence, '3');
  t.is(again.waiting, 0n);
  t.is(await told(), 23);
  t.true((await cursor()).watermark.getTime() >= Math.floor(Date.now() / 60_000) * 60_000 - 600_000);
});

test.serial('an answer that was lost changes nothing', async (t) => {
  const spool = open();
  await count(spool, 100n);
  spool.confirm(await report({ sequence: 0n }));
  await report(spool.next()!.batch);
  await send(open());
  t.is(await stored(), 123);
});

test.serial('a console that was put back records the gap and takes what is still held', async (t) => {
  const spool = open();
  await send(spool);
  await api.sql('usage_cursor').where({ node_id: node.identity.nodeId }).update({ sequence: 2 });
  await count(spool, 1000n);
  await send(spool);
  t.is((await cursor()).sequence, '5');
  t.is(await stored(), 1123);
  t.is(await told(), 1123);
  t.like(await api.ok('GET', `/usage/gaps?${range()}`), { total: 1, items: [{ nodeId: node.id, reason: 'skipped' }] });
});

test.serial('a spool that was lost counts on behind what the console has', async (t) => {
  folder = join(folder, 'other');
  drained = 0n;
  const spool = open();
  await count(spool, 10_000n);
  await send(open());
  t.is(await stored(), 11_123);
  t.is((await cursor()).sequence, '6');
});

test.serial('a node whose clock is ten minutes fast or slow changes nothing', async (t) => {
  for (const [wrongMs, requests] of [
    [600_000, 500],
    [-600_000, 700],
  ] as const) {
    const before = await told();
    const from = Math.floor(Date.now() / 60_000) * 60_000;
    await count(open(), BigInt(requests), wrongMs);
    const to = Date.now();
    await send(open());
    t.is(await told(), before + requests);
    const { watermark } = await cursor();
    t.true(watermark.getTime() >= from - 60_000 && watermark.getTime() <= to);
    const rows: { minute: Date }[] = await api.sql('usage_minute').where({ bytes_sent: requests });
    t.is(rows.length, 1);
    t.true(rows[0]!.minute.getTime() >= from - 7_260_000 && rows[0]!.minute.getTime() <= to - 7_200_000);
  }
});

test.serial('bans and heartbeats do not wait for a day of counts that nodes deliver late', async (t) => {
  const { clusterId } = node.identity;
  const siteIds = [siteId, ...(await copySites(running.running.runtime, clusterId, siteId, 49))];
  const fleet = await startTestFleet(running, clusterId, 8);
  const day = backlogCounts(siteIds, 1440);
  // One batch of a node is taken each second at most: minutes of work, however slow all of this is.
  const counts = [day, day, day, day].flat();
  const backlogs = fleet.identities.map((identity) => new Backlog(running.nodeApiUrl, identity, counts));
  t.teardown(async () => {
    for (const backlog of backlogs) backlog.pause();
    await fleet.stop();
  });
  for (const backlog of backlogs) backlog.resume();
  await eventually(() => backlogs.every((backlog) => backlog.stored > 0), { what: 'the first batch of each node' });
  const made = await api.call('POST', '/bans', {
    scope: 'platform',
    cidr: '203.0.113.7',
    reason: 'abuse',
    durationSeconds: 600,
  });
  const [, number] = /^ban=\d+:(\d+)$/.exec(made.headers.get('x-svc-change')!)!;
  await fleet.waitForBans(number!, 60_000);
  await Promise.all(fleet.nodes.map((each) => each.heartbeat()));
  t.true(backlogs.every((backlog) => backlog.left > 0));
});
