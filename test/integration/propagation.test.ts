// How fast changes reach the nodes: measured by the processes that push them, told by the overview.
import test, { type ExecutionContext } from 'ava';
import {
  propagationFigures,
  RECENT_CHANGES,
  sweepPropagation,
  writePropagation,
} from '../../models/overview/propagation.ts';
import banFeed from '../../services/ban-fanout/ban-fanout.feed.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { Overview } from '../helpers/overview.ts';
import { Api, type Body } from '../helpers/resources.ts';

const DAY = 86_400_000;
const NODE = 'node';

let running: TestConsole;
let api: Api;
let overview: Overview;
let clusterId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  overview = new Overview(api);
  clusterId = await api.cluster('hong-kong');
  // The feed of bans has begun.
  await api.ok('POST', '/bans', { scope: 'platform', cidr: '203.0.113.9', reason: 'abuse', durationSeconds: 600 });
});
test.after.always('stop', () => running?.stop());

/** What the definition says, from every change's row. */
function naive(rows: { nodes: number; reached: number; slowest_ms: number | null; slowest_node_id: string | null }[]) {
  const times = rows
    .map((row) => (row.reached >= row.nodes ? row.slowest_ms! : Number.POSITIVE_INFINITY))
    .sort((a, b) => a - b);
  const within = (share: number) => {
    const value = times[Math.max(0, Math.ceil(share * times.length) - 1)]!;
    return Number.isFinite(value) ? value : null;
  };
  const complete = rows.filter((row) => row.reached >= row.nodes).length;
  return { changes: rows.length, complete, p50: within(0.5), p95: within(0.95), p99: within(0.99) };
}

test.serial('percentiles are those of the newest changes; one that is not everywhere is slower than all', async (t) => {
  await api.sql('propagation').delete();
  const at = Date.now();
  const rows = Array.from({ length: RECENT_CHANGES + 40 }, (_, index) => ({
    feed: 'config',
    cluster_id: clusterId,
    epoch: 1,
    number: index + 1,
    published_at: new Date(at - (RECENT_CHANGES + 40 - index) * 1000),
    nodes: 3,
    reached: index % 40 === 0 ? 2 : 3,
    slowest_ms: (index * 7919) % 997,
    slowest_node_id: index % 3 === 0 ? NODE : 'gone',
  }));
  await api.sql('propagation').insert(rows);
  const recent = rows.slice(-RECENT_CHANGES);
  const [figures] = await propagationFigures(api.sql);
  t.like(figures, { feed: 'config', ...naive(recent) });
  t.is(figures!.p99, null);
  t.not(figures!.p95, null);
  const last = recent.filter((row) => row.slowest_node_id === 'gone');
  t.deepEqual(figures!.slowest, {
    id: 'gone',
    name: null,
    lastIn: last.length,
    worstMs: Math.max(...last.map((row) => row.slowest_ms)),
  });
  // Of a cluster: its changes and those of all clusters, and the slowest of its own nodes.
  const own = await api.node(clusterId, 'slow');
  const another = await api.cluster('other');
  const foreign = await api.node(another, 'slower');
  const mixed = rows.map((row, index) => ({
    ...row,
    feed: 'bans',
    cluster_id: ['', clusterId, another][index % 3]!,
    slowest_node_id: index % 3 === 1 ? own : foreign,
  }));
  await api.sql('propagation').insert(mixed);
  const about = mixed.filter((row) => row.cluster_id !== another).slice(-RECENT_CHANGES);
  const ofCluster = (await propagationFigures(api.sql, clusterId)).find(({ feed }) => feed === 'bans')!;
  t.like(ofCluster, naive(about));
  const ours = about.filter((row) => row.slowest_node_id === own);
  t.deepEqual(ofCluster.slowest, {
    id: own,
    name: 'slow',
    lastIn: ours.length,
    worstMs: Math.max(...ours.map((row) => row.slowest_ms)),
  });
  await api.sql('propagation').where({ feed: 'bans' }).delete();
  await api.sql('node').whereIn('id', [own, foreign]).delete();
  await api.ok('DELETE', `/clusters/${another}`);
  // Rows of a day ago count for nothing, and go.
  await api.sql('propagation').update({ published_at: api.sql.raw("published_at - interval '2 days'") });
  t.deepEqual(await propagationFigures(api.sql), []);
  t.is(await sweepPropagation(api.sql, 500), 500);
  t.is(await sweepPropagation(api.sql, 500), 40);
  t.is((await api.sql('propagation').count())[0]!.count, '0');
});

test.serial('what processes measure of one change adds up; of a burst the first of each 20 ms is kept', async (t) => {
  const { pools } = running.running.runtime;
  const { epoch } = await api.sql('console_state').first('epoch');
  const start = (await api.sql('ban_change').max('seq'))[0]!.max as string;
  // Long before now, so that no change from before is in the same 20 ms.
  const base = Math.floor(Date.now() / 1000) * 1000 - 60_000;
  const offsets = [0, 5, 19, 20, 21, 47, 60];
  const numbers = offsets.map((_, index) => BigInt(start) + BigInt(index) + 1n);
  await api.sql('ban_change').insert(
    offsets.map((offset, index) => ({
      seq: String(numbers[index]),
      ban_id: `burst-${index}`,
      cluster_id: index === 3 ? clusterId : '',
      keep_until: new Date(Date.now() + DAY),
      changed_at: new Date(base + offset),
    })),
  );
  const batch = (from: bigint, to: bigint, more: object) => ({
    clusterId,
    feed: 'bans' as const,
    epoch: BigInt(epoch),
    from,
    to,
    nodes: 2,
    reached: 2,
    lastAt: base + 100,
    lastNode: NODE,
    ...more,
  });
  const last = numbers.at(-1)!;
  // One process got them in two batches, another in one, with the slower node and one that has it not; a third has other nodes.
  await writePropagation(
    pools.channel,
    [banFeed],
    [batch(BigInt(start), numbers[1]!, {}), batch(numbers[1]!, last, {})],
  );
  await writePropagation(
    pools.channel,
    [banFeed],
    [batch(BigInt(start), last, { nodes: 3, lastAt: base + 160, lastNode: 'b' })],
  );
  await writePropagation(
    pools.channel,
    [banFeed],
    [batch(BigInt(start), last, { clusterId: 'other', nodes: 1, reached: 0, lastAt: null, lastNode: null })],
  );
  const stored = await api.sql('propagation').where({ feed: 'bans' }).orderBy('number');
  t.deepEqual(
    stored.map(({ number, cluster_id, nodes, reached, slowest_ms, slowest_node_id }) => [
      BigInt(number) - BigInt(start),
      cluster_id === '' ? 'all' : cluster_id,
      nodes,
      reached,
      Math.round(slowest_ms),
      slowest_node_id,
    ]),
    [
      [1n, 'all', 6, 4, 160, 'b'],
      [4n, clusterId, 5, 4, 140, 'b'],
      [6n, 'all', 6, 4, 113, 'b'],
      [7n, 'all', 6, 4, 100, 'b'],
    ],
  );
  await api.sql('ban_change').where('ban_id', 'like', 'burst-%').delete();
  await api.sql('propagation').delete();
});

/** The change of the answer's header, followed until the console has measured it. */
async function measured(t: ExecutionContext, call: () => Promise<Body>, rows: number): Promise<Body[]> {
  const before = Number((await api.sql('propagation').count())[0]!.count);
  await call();
  return eventually(async () => {
    const stored = await api.sql('propagation').orderBy('published_at');
    t.true(stored.length <= before + rows);
    return stored.length === before + rows && stored.slice(before);
  });
}

test.serial('a publication and a ban are measured over the nodes of two processes', async (t) => {
  const measuredCluster = await api.cluster('measured');
  const second = await startTestConsole({
    database: { url: running.databaseUrl },
    masterKey: running.running.runtime.env.masterKey.toString('base64'),
    redisPrefix: running.running.runtime.env.redisPrefix,
    setUp: false,
  });
  const here = await startTestFleet(running, measuredCluster, 3);
  const there = await startTestFleet({ client: running.client, nodeApiUrl: second.nodeApiUrl }, measuredCluster, 2);
  t.teardown(async () => {
    await here.stop();
    await there.stop();
    await second.stop();
  });
  await api.sql('propagation').delete();
  const all = [...here.nodes, ...there.nodes];
  await eventually(() => all.every((node) => node.config.revision > 0n));

  await measured(t, () => api.site(measuredCluster, 'measured.example'), 1);
  const config = await eventually(async () => {
    const row = await api.sql('propagation').where({ feed: 'config' }).first();
    return row?.nodes === 5 && row;
  });
  t.like(config, { cluster_id: measuredCluster, reached: 5 });
  t.true(all.some(({ nodeId: id }) => id === config.slowest_node_id));

  await api.ok('POST', '/bans', { scope: 'platform', cidr: '198.18.9.9', reason: 'abuse', durationSeconds: 600 });
  const answer = await eventually(async () => {
    const now = await overview.get();
    return now.propagation.bans.latest?.spreadMs !== null && now.propagation.bans.recent && now;
  });
  const { bans } = answer.propagation;
  t.like(bans.recent, { changes: 1, complete: 1 });
  t.like(bans.latest, { kind: 'ban', reason: 'ban_created', clusterId: null });
  t.is(bans.recent.p50Ms, bans.latest.spreadMs);
  t.is(bans.recent.p99Ms, bans.latest.spreadMs);
  t.is(bans.recent.slowest.name, bans.latest.slowest.name);
  t.is(answer.propagation.config.latest.id, `${measuredCluster}=${config.number}`);
  t.is(answer.propagation.config.latest.spreadMs, config.slowest_ms);
  t.like(answer.propagation.config.latest, {
    kind: 'config',
    clusterName: 'measured',
    reason: 'site_created',
    done: true,
  });

  // A node that does not say that it has a change keeps it from being everywhere.
  here.nodes[0]!.holdAcks(true);
  await api.ok('POST', '/bans', { scope: 'platform', cidr: '198.18.9.10', reason: 'abuse', durationSeconds: 600 });
  const waiting = await eventually(async () => {
    const { latest } = (await overview.get()).propagation.bans;
    return latest.id !== bans.latest.id && latest.nodes.applied >= 4 && latest;
  });
  t.is(waiting.spreadMs, null);
  here.nodes[0]!.holdAcks(false);
  await eventually(async () => (await overview.get()).propagation.bans.recent.complete === 2);
});
