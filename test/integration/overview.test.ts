// The overview: each kind of attention as it comes and goes, sizes, traffic, and how fast changes reach the nodes.
import test, { type ExecutionContext } from 'ava';
import type { Connection, Identity } from '../../bench/fleet/connection.ts';
import { ATTENTION_KINDS, NODE_WORDS } from '../../contract/resources/overview.ts';
import { deliveryOf, situationNow } from '../../models/delivery.ts';
import { fleetView } from '../../models/overview-nodes.ts';
import { siteStates } from '../../models/overview-sites.ts';
import { propagationFigures, RECENT_CHANGES, sweepPropagation, writePropagation } from '../../models/propagation.ts';

import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne, startTestFleet } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

const DAY = 86_400_000;
const FEATURES = ['bans-v1', 'challenge-v1'];

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;
let identity: Identity;
let connection: Connection;
let nodeId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', async () => {
  connection?.destroy();
  await running?.stop();
});

const overview = (): Promise<Body> => api.ok('GET', '/overview');
const beat = (more: Body = {}): Promise<unknown> =>
  connection.call('heartbeat', { info: { features: FEATURES }, dataPlaneHealthy: true, ...more });
/** The item as soon as the list has it, which is 2 s old at most. */
const shown = (kind: string, test: (item: Body) => boolean = () => true): Promise<Body> =>
  eventually(async () => (await overview()).attention.find((item: Body) => item.kind === kind && test(item)), {
    what: kind,
    everyMs: 200,
  });
const gone = (kind: string): Promise<unknown> =>
  eventually(async () => (await overview()).attention.every((item: Body) => item.kind !== kind), {
    what: `no ${kind}`,
    everyMs: 200,
  });
const state = () => api.sql('node_state').where({ node_id: nodeId });
/** What the node was told to run, as it reports it. */
async function onTarget(): Promise<Body> {
  const { target } = await connection.call('heartbeat', { info: { features: FEATURES }, dataPlaneHealthy: true });
  return { config: target!.config!, bans: { position: target!.bans! } };
}

test.serial('a console in which nothing is yet says so: no attention, no data, no guesses', async (t) => {
  const answer = await overview();
  t.like(answer, {
    attention: [],
    attentionTotal: 0,
    clusters: 1,
    nodes: 0,
    onlineNodes: 0,
    sites: 0,
    siteStates: { live: 0, partial: 0, pending: 0, disabled: 0 },
    traffic: null,
    bans: { manual: 0, automatic: 0 },
  });
  t.is(answer.propagation.config.recent, null);
  t.deepEqual(answer.propagation.bans, { latest: null, recent: null });
  t.deepEqual(await api.ok('GET', '/overview/traffic'), { from: null, requestsPerSecond: [] });
  await api.badField(t, '/hours', 'GET', '/overview/traffic?hours=25');
  await api.badField(t, '/hours', 'GET', '/overview/traffic?hours=0');
});

test.serial('an operator, by key or session, may ask; nobody else', async (t) => {
  const { client } = running;
  t.is((await client.request('GET', '/api/v1/overview')).status, 401);
  const viewed = await client.rpc<Body>('overview.get', {});
  t.deepEqual(viewed.attention, []);
});

test.serial('a node that does what it should needs nobody', async (t) => {
  clusterId = await api.cluster('hong-kong');
  siteId = (await api.site(clusterId, 'shop.example')).id;
  identity = await enrollOne(running, clusterId, FEATURES);
  nodeId = identity.nodeId;
  connection = connectAs(running, identity);
  await beat(await onTarget());
  const answer = await eventually(async () => {
    const now = await overview();
    return now.nodeStates.ok === 1 && now.siteStates.live === 1 && now;
  });
  t.like(answer, { attention: [], attentionTotal: 0, clusters: 2, nodes: 1, onlineNodes: 1, sites: 1 });
  t.is(answer.revisions[0].clusterId, clusterId);
  t.is(answer.revisions[0].reasonCode, 'site_created');
});

type Deed = () => Promise<unknown>;
interface NodeCase {
  kind: string;
  word: string;
  begin: Deed;
  end: Deed;
  level?: string;
}

const NODE_CASES: NodeCase[] = [
  {
    kind: 'nodes_unhealthy',
    word: 'offline',
    // As 45 s of silence leave it.
    begin: () => state().update({ last_seen_at: new Date(Date.now() - 60_000) }),
    end: async () => beat(await onTarget()),
  },
  {
    kind: 'nodes_unhealthy',
    word: 'refused',
    begin: async () => {
      await api.sql('node_certificate').where({ node_id: nodeId }).update({ state: 'superseded' });
      await eventually(async () => {
        const stranger = connectAs(running, identity);
        const answer = await stranger.call('heartbeat', {}).then(
          () => 'accepted',
          () => 'refused',
        );
        stranger.destroy();
        return answer === 'refused';
      });
    },
    end: async () => {
      await api.sql('node_certificate').where({ node_id: nodeId }).update({ state: 'active' });
      connection.destroy();
      connection = connectAs(running, identity);
      await eventually(async () => {
        await beat(await onTarget());
        return true;
      });
    },
  },
  {
    kind: 'nodes_unhealthy',
    word: 'certificate_expired',
    begin: () =>
      api
        .sql('node_certificate')
        .where({ node_id: nodeId })
        .update({ not_after: new Date(Date.now() - DAY) }),
    end: () =>
      api
        .sql('node_certificate')
        .where({ node_id: nodeId })
        .update({ not_after: new Date(Date.now() + 30 * DAY) }),
  },
  {
    kind: 'nodes_unhealthy',
    word: 'apply_failed',
    begin: async () =>
      beat({
        ...(await onTarget()),
        failed: [{ kind: 'site', id: siteId, reason: 'broken', runningHash: new Uint8Array(32) }],
      }),
    end: async () => beat(await onTarget()),
  },
  {
    kind: 'nodes_unhealthy',
    word: 'data_plane_unhealthy',
    begin: async () => beat({ ...(await onTarget()), dataPlaneHealthy: false }),
    end: async () => beat(await onTarget()),
  },
  {
    kind: 'nodes_lagging',
    word: 'upgrade_required',
    level: 'watch',
    begin: async () => {
      await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example', '.shop.example'] });
      await eventually(async () => {
        await beat();
        return (await api.ok('GET', `/nodes/${nodeId}`)).upgradeRequired;
      });
    },
    end: async () => {
      await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example'] });
      await eventually(async () => {
        await beat(await onTarget());
        return !(await api.ok('GET', `/nodes/${nodeId}`)).upgradeRequired;
      });
    },
  },
  {
    kind: 'nodes_lagging',
    word: 'config_behind',
    level: 'watch',
    begin: async () => {
      await api.ok('PATCH', `/sites/${siteId}`, { name: 'Shop' });
      await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example', 'www.shop.example'] });
      // On its way until it is 10 s old.
      await api
        .sql('config_revision')
        .where({ cluster_id: clusterId })
        .update({
          created_at: api.sql.raw("created_at - interval '1 minute'"),
        });
      await api
        .sql('node')
        .where({ id: nodeId })
        .update({ enrolled_at: new Date(Date.now() - DAY) });
    },
    end: async () => beat(await onTarget()),
  },
  {
    kind: 'nodes_lagging',
    word: 'bans_behind',
    level: 'watch',
    begin: async () => {
      await api.ok('POST', '/bans', { scope: 'platform', cidr: '203.0.113.9', reason: 'abuse', durationSeconds: 600 });
      await api.sql('ban_change').update({ changed_at: api.sql.raw("changed_at - interval '1 minute'") });
    },
    end: async () => beat(await onTarget()),
  },
  {
    kind: 'nodes_bans_unapplied',
    word: 'ok',
    level: 'watch',
    begin: async () => {
      const { items } = await api.ok('GET', '/bans');
      const target = await onTarget();
      await beat({ ...target, bans: { ...target.bans, unappliedIds: [items[0].id], unapplied: 1n } });
    },
    end: async () => beat(await onTarget()),
  },
  {
    kind: 'node_certificates_ending',
    word: 'ok',
    begin: () =>
      api
        .sql('node_certificate')
        .where({ node_id: nodeId })
        .update({ not_after: new Date(Date.now() + 5 * DAY) }),
    end: () =>
      api
        .sql('node_certificate')
        .where({ node_id: nodeId })
        .update({ not_after: new Date(Date.now() + 30 * DAY) }),
  },
];

for (const { kind, word, level = 'act', begin, end } of NODE_CASES) {
  test.serial(`${kind}: a node is ${word}, and is not any more`, async (t) => {
    await begin();
    const item = await shown(kind, ({ named }) => named[0].reason === word);
    t.like(item, { level, clusterId, clusterName: 'hong-kong', count: 1, version: '', problem: null });
    t.deepEqual(item.named, [{ type: 'node', id: nodeId, name: item.named[0].name, reason: word }]);
    t.is(item.revision !== null, kind === 'nodes_lagging');
    await end();
    await gone(kind);
    await eventually(async () => (await overview()).nodeStates.ok === 1);
  });
}

test.serial('a change that has only just been published makes nobody look', async (t) => {
  await api.ok('PATCH', `/sites/${siteId}`, { domains: ['shop.example'] });
  const fleet = await fleetView(api.sql, NODE_WORDS);
  t.deepEqual(fleet.groups, []);
  t.is(fleet.states.ok, 1);
  t.deepEqual(await siteStates(api.sql, fleet.spans), { live: 0, partial: 1, pending: 0, disabled: 0 });
  await beat(await onTarget());
});

test.serial('sites above normal are counted by cluster, and Under Attack that was left on is named', async (t) => {
  await connection.call('reportSecurity', { sites: [{ siteId, level: 2, paths: [] }], hasState: true });
  const item = await shown('sites_above_normal');
  t.like(item, { level: 'watch', clusterId, count: 1 });
  t.like(item.named[0], { type: 'site', id: siteId, reason: 'js' });
  await connection.call('reportSecurity', { sites: [{ siteId, level: 4, paths: [] }], hasState: true });
  await shown('sites_above_normal', ({ level }) => level === 'act');
  await connection.call('reportSecurity', { sites: [], hasState: true });
  await gone('sites_above_normal');

  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: true });
  t.like(await shown('sites_under_attack'), { level: 'watch', count: 1, clusterId: null, clusterName: '' });
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: false });
  await gone('sites_under_attack');

  await api.ok('PUT', '/settings/protection', { underAttack: true });
  t.like(await shown('under_attack_on'), { level: 'watch', count: 0, named: [] });
  await api.ok('PUT', '/settings/protection', { underAttack: false });
  await gone('under_attack_on');
});

test.serial('a publication that was asked for and is not made is an item', async (t) => {
  const { epoch } = await api.sql('cluster_head').where({ cluster_id: clusterId }).first('epoch');
  const lock = await api.sql.transaction();
  // Who publishes for the cluster waits for its head.
  await lock('cluster_head').where({ cluster_id: clusterId, epoch }).forUpdate();
  try {
    await api.sql('publish_request').insert({
      cluster_id: clusterId,
      entries: '[]',
      reason: 'protection_settings_changed',
      actor: JSON.stringify({ type: 'system', id: null, name: 'test' }),
      created_at: new Date(Date.now() - 120_000),
    });
    t.like(await shown('publications_waiting'), { level: 'act', count: 1 });
  } finally {
    await lock.rollback();
  }
  await gone('publications_waiting');
});

test.serial('with nodes and none of them connected, the check of the node channel is an item', async (t) => {
  await api.ok('PUT', '/settings/node-channel', { url: 'https://console.invalid:8443' });
  await state().update({ last_seen_at: new Date(Date.now() - 60_000) });
  t.like(await shown('node_channel'), { level: 'act', problem: 'unreachable', clusterId: null });
  await api.ok('PUT', '/settings/node-channel', { url: '' });
  await beat(await onTarget());
  await gone('node_channel');
});

test.serial('kinds come in the order of the specification, and the list is bounded', async (t) => {
  const clusters: string[] = [];
  for (let index = 0; index < 60; index++) clusters.push(await api.cluster(`full-${index}`));
  for (const id of clusters) await api.node(id, `away-${id.slice(-4)}`, { online: false });
  for (let index = 0; index < 7; index++) await api.node(clusters[0]!, `more-${index}`, { online: false });
  await api.ok('PUT', '/settings/protection', { underAttack: true });
  const answer = await eventually(async () => {
    const now = await overview();
    return now.attentionTotal === 61 && now;
  });
  t.is(answer.attention.length, 50);
  t.like(answer.attention[0], { clusterId: clusters[0], count: 8 });
  t.is(answer.attention[0].named.length, 5);
  t.is(answer.nodes, 68);
  t.is(answer.onlineNodes, 1);
  await api.sql('node').whereIn('cluster_id', clusters.slice(1)).delete();
  const shorter = await eventually(async () => {
    const now = await overview();
    return now.attentionTotal === 2 && now;
  });
  const order = shorter.attention.map(({ kind }: Body) => (ATTENTION_KINDS as readonly string[]).indexOf(kind));
  t.deepEqual(
    order,
    order.toSorted((a: number, b: number) => a - b),
  );
  t.is(order.length, 2);
  await api.ok('PUT', '/settings/protection', { underAttack: false });
  for (const id of clusters) {
    await api.sql('node').where({ cluster_id: id }).delete();
    await api.ok('DELETE', `/clusters/${id}`);
  }
});

test.serial('requests per second are those of the latest minute that every node could report', async (t) => {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const minutes = [
    [now - 600, 60n],
    [now - 180, 600n],
    [now - 120, 1200n],
    [now, 999n],
  ].map(([minute, requests]) => ({ siteId, minute: BigInt(minute!), requests: requests as bigint }));
  await connection.call('reportStats', { sequence: 1n, minutes });
  const series = await eventually(
    async () => {
      const answer = await api.ok('GET', '/overview/traffic?hours=1');
      return answer.from !== null && answer;
    },
    { everyMs: 500 },
  );
  t.is(Date.parse(series.from), (now - 600) * 1000);
  const values: number[] = series.requestsPerSecond;
  t.deepEqual(values.slice(0, 9), [1, 0, 0, 0, 0, 0, 0, 10, 20]);
  t.true(values.every((value) => value <= 20));
  const { traffic } = await eventually(async () => {
    const answer = await overview();
    return answer.traffic !== null && answer;
  });
  // A minute may have begun since.
  t.true([20, 0, 999 / 60].includes(traffic.requestsPerSecond), JSON.stringify(traffic));
  // A batch that comes twice counts once here, too.
  await connection.call('reportStats', { sequence: 1n, minutes });
  const rows = await api.sql('cluster_request_minute').where({ cluster_id: clusterId });
  t.is(
    rows.reduce((sum, { requests }) => sum + Number(requests), 0),
    60 + 600 + 1200 + 999,
  );
});

test.serial('bans in force are counted by who made them; ended ones are not', async (t) => {
  const before = (await overview()).bans;
  const ban = (cidr: string, durationSeconds: number) =>
    api.ok('POST', '/bans', { scope: 'platform', cidr, reason: 'abuse', durationSeconds });
  await ban('198.18.0.1', 600);
  const { id } = await ban('198.18.0.2', 600);
  await ban('198.18.0.3', 600);
  await api.ok('DELETE', `/bans/${id}`);
  await api
    .sql('ban')
    .where({ cidr: '198.18.0.3/32' })
    .update({ expires_at: new Date(Date.now() - 1000) });
  const bans = await eventually(async () => {
    const now = (await overview()).bans;
    return now.manual === before.manual + 1 && now;
  });
  t.is(bans.automatic, 0);
  await beat(await onTarget());
});

/** Sites by state, one by one. */
async function naiveStates(): Promise<Record<string, number>> {
  const sites = await api.sql('site').select('id', 'enabled', api.sql.ref('cluster_id').as('clusterId'));
  const states: Record<string, number> = { live: 0, partial: 0, pending: 0, disabled: 0 };
  for (const { state } of (await deliveryOf(api.sql, sites, situationNow)).values()) states[state]!++;
  return states;
}

test.serial('sites by delivery are as if each were asked', async (t) => {
  const compare = async (what: string) => {
    const { spans } = await fleetView(api.sql, NODE_WORDS);
    t.deepEqual({ ...(await siteStates(api.sql, spans)) }, await naiveStates(), what);
  };
  const other = await api.cluster('states');
  await compare('a cluster without sites');
  const made: string[] = [];
  for (let index = 0; index < 6; index++) made.push((await api.site(other, `state-${index}.example`)).id);
  await compare('no node');
  const behind = await api.node(other, 'behind');
  const ahead = await api.node(other, 'ahead');
  await compare('nodes without a configuration');
  const move = async (id: string, revision: number, more: object = {}) => {
    const { epoch } = await api.sql('cluster_head').where({ cluster_id: other }).first('epoch');
    await api
      .sql('node_state')
      .where({ node_id: id })
      .update({ epoch, track: 'S', revision, ...more });
  };
  const head = async () => Number((await api.sql('cluster_head').where({ cluster_id: other }).first()).revision);
  await move(ahead, await head());
  await compare('one node has none');
  await move(behind, (await head()) - 2);
  await compare('one node is two behind');
  await move(ahead, (await head()) - 1);
  await compare('nobody has the newest');
  await api.ok('PUT', `/sites/${made[0]}/enabled`, { enabled: false });
  await api.ok('PATCH', `/sites/${made[1]}`, { domains: ['state-1.example', 'again.example'] });
  await compare('a site was disabled, another changed');
  await move(ahead, await head());
  await move(behind, await head());
  await compare('all have everything');
  await move(behind, await head(), { failed: JSON.stringify([{ kind: 'site', id: made[2], running: true }]) });
  await compare('one could not apply a site');
  await move(behind, await head(), { failed: '[]', data_plane_healthy: false });
  await compare('one is not healthy');
  await api.sql('node').whereIn('id', [behind, ahead]).delete();
  for (const id of made) await api.ok('DELETE', `/sites/${id}`);
  await api.ok('DELETE', `/clusters/${other}`);
});

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
    slowest_node_id: index % 3 === 0 ? nodeId : 'gone',
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
  const base = Math.floor(Date.now() / 1000) * 1000;
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
    lastNode: nodeId,
    ...more,
  });
  const last = numbers.at(-1)!;
  // One process got them in two batches, another in one, with the slower node and one that has it not; a third has other nodes.
  await writePropagation(pools.channel, [batch(BigInt(start), numbers[1]!, {}), batch(numbers[1]!, last, {})]);
  await writePropagation(pools.channel, [batch(BigInt(start), last, { nodes: 3, lastAt: base + 160, lastNode: 'b' })]);
  await writePropagation(pools.channel, [
    batch(BigInt(start), last, { clusterId: 'other', nodes: 1, reached: 0, lastAt: null, lastNode: null }),
  ]);
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
    const now = await overview();
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
    const { latest } = (await overview()).propagation.bans;
    return latest.id !== bans.latest.id && latest.nodes.applied >= 4 && latest;
  });
  t.is(waiting.spreadMs, null);
  here.nodes[0]!.holdAcks(false);
  await eventually(async () => (await overview()).propagation.bans.recent.complete === 2);
});
