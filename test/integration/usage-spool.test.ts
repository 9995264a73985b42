// The spool of an agent against a console: offline, late, twice, and a console that was put back.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { drainToSpool } from '../../agents/edge/stats/drain.ts';
import { Spool } from '../../agents/edge/stats/spool.ts';
import { openSpoolFolder } from '../../agents/edge/stats/spool-files.ts';
import { createLog } from '../../agents/kit/log.ts';
import { Backlog, backlogCounts } from '../../bench/fleet/backlog.ts';
import { copySites } from '../../bench/lib/copy-sites.ts';
import { DrainStatsResponseSchema } from '../../proto/gen/svc/edge/v1/edge_pb.js';
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

/** One drain with this many requests in a minute of some hours ago. */
async function count(spool: Spool, requests: bigint): Promise<void> {
  const minute = BigInt(Math.floor(Date.now() / 60_000) * 60 - 7200);
  const answers = [
    { sequence: ++drained, minutes: [{ siteId, minute, requests, bytesSent: requests, bytesReceived: 1n }] },
    {},
  ].map((answer) => create(DrainStatsResponseSchema, answer));
  await drainToSpool({ client: { drainStats: async () => answers.shift()! }, spool, offsetMs: () => 0, log });
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
  t.is((await api.sql('usage_gap').where({ node_id: node.identity.nodeId })).length, 1);
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
