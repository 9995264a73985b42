import test, { type ExecutionContext } from 'ava';
import type { Counter } from 'prom-client';
import type { Connection } from '../../bench/fleet/connection.ts';
import { createDecoder } from '../../bench/fleet/decode.ts';
import { purgeMetrics } from '../../models/nodes/node-metrics.ts';
import { positionMarks } from '../../pipeline/position-marks.ts';
import type { ConfigPage } from '../../proto/gen/svc/node/v1/config_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let nodeId: string;
let connection: Connection;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

let clusters = 0;
test.beforeEach('a node of a new cluster', async () => {
  connection?.destroy();
  clusterId = await api.cluster(`reports-${clusters++}`);
  const identity = await enrollOne(running, clusterId);
  nodeId = identity.nodeId;
  connection = connectAs(running, identity);
});
test.afterEach.always('disconnect', () => connection?.destroy());

const node = (): Promise<Body> => api.ok('GET', `/nodes/${nodeId}`);
/** The node as soon as it shows what is asked. */
const shown = (test: (node: Body) => boolean): Promise<Body> =>
  eventually(async () => ((await node()).id && test(await node()) ? node() : false));
const addresses = async () =>
  (await api.sql('node_address').where({ node_id: nodeId }).select('source', api.sql.raw('host(address) as address')))
    .map((row) => `${row.source} ${row.address}`)
    .sort();

test.serial(
  'the last 24 hours of metrics are answered as a fixed number of points, averages of their minutes',
  async (t) => {
    const info = { features: ['metrics-v1'] };
    await connection.call('heartbeat', {
      info,
      metrics: { cpuPercent: 30, memoryUsedBytes: 5n, activeConnections: 7n },
    });
    await shown(({ metrics }) => metrics?.cpuPercent === 30);
    const row = {
      node_id: nodeId,
      load1: 0,
      memory_used_bytes: 0,
      memory_total_bytes: 8,
      egress_bps: 0,
      active_connections: 0,
    };
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 2 * 3_600_000;
    const minutes = [
      [hour, 10],
      [hour + 240_000, 20],
      [hour - 48 * 3_600_000, 90],
    ].map(([at, cpu]) => ({ ...row, minute: new Date(at!), cpu_percent: cpu }));
    await api.sql('node_metrics_minute').insert(minutes);
    const history = await eventually(async () => {
      const answer = await api.ok('GET', `/nodes/${nodeId}/metrics`);
      return answer.points.filter(Boolean).length === 2 && answer;
    });
    t.is(history.points.length, 288);
    t.is(history.stepSeconds, 300);
    const at = (hour - Date.parse(history.from)) / 300_000;
    t.like(history.points[at], { cpuPercent: 15, memoryTotalBytes: 8 });
    const latest = history.points.findLast(Boolean);
    t.like(latest, { cpuPercent: 30, memoryUsedBytes: 5, activeConnections: 7 });
    t.is((await api.call('GET', '/nodes/none/metrics')).status, 404);
    t.is(await purgeMetrics(api.sql), 1, 'older than a day');
  },
);

test.serial('a heartbeat is what the node page shows', async (t) => {
  const { target } = await connection.call('heartbeat', {});
  await connection.call('heartbeat', {
    info: {
      hostname: 'edge-1',
      agentVersion: '1.2.3',
      os: 'linux',
      arch: 'arm64',
      engine: 'caddy',
      engineVersion: '2.11.4',
      ipAddresses: ['203.0.113.5', 'x'],
      features: ['metrics-v1', 'bans-v1'],
    },
    config: target!.config!,
    bans: { position: target!.bans!, entries: 3n, capacity: 100n, autoEvicted: 2n, kernelEntries: 1n },
    metrics: { cpuPercent: 12.5, memoryUsedBytes: 5n, memoryTotalBytes: 10n },
    dataPlaneHealthy: true,
  });
  const seen = await shown(({ hostname, applyState }) => hostname === 'edge-1' && applyState === 'applied');
  t.like(seen, {
    online: true,
    agentVersion: '1.2.3',
    os: 'linux',
    arch: 'arm64',
    engine: 'caddy',
    engineVersion: '2.11.4',
    ipAddresses: ['203.0.113.5'],
    remoteAddress: '127.0.0.1',
    supportedFeatures: ['bans-v1', 'metrics-v1'],
    upgradeRequired: false,
    dataPlaneHealthy: true,
    appliedRevision: '1',
    targetRevision: '1',
    applyMessage: '',
    authError: null,
    failedEntries: [],
  });
  t.like(seen.banStatus, {
    entries: 3,
    capacity: 100,
    unapplied: 0,
    unappliedIds: [],
    kernelEntries: 1,
    autoEvicted: 2,
    appliedSequence: String(target!.bans!.sequence),
    reportedAt: seen.lastSeenAt,
  });
  t.like(seen.metrics, { cpuPercent: 12.5, memoryUsedBytes: 5, memoryTotalBytes: 10 });
  t.regex(seen.certFingerprint, /^[0-9a-f]{64}$/);
  t.like(await api.ok('GET', `/clusters/${clusterId}`), {
    nodeCount: 1,
    onlineNodeCount: 1,
    liveNodeCount: 1,
    appliedNodeCount: 1,
  });
});

test.serial('what a node says never keeps the reports of others from being stored', async (t) => {
  // Cut in the middle of a character, and a time that the database cannot read: both are written with the reports that
  // came in the same second.
  await connection.call('heartbeat', {
    info: { hostname: `${'h'.repeat(252)}😀` },
    message: `${'m'.repeat(499)}😀`,
    certificateNotAfter: 300_000_000_000n,
  });
  const seen = await shown(({ online }) => online);
  t.true(seen.applyMessage.isWellFormed());
  t.is(seen.applyMessage.slice(0, 499), 'm'.repeat(499));
});

test.serial(
  'an answer tells the target, when to report again and which addresses the kernel must let through',
  async (t) => {
    await api.ok('PUT', '/settings/node-channel', { url: 'https://console.example:8443' });
    const answer = await eventually(async () => {
      const heartbeat = await connection.call('heartbeat', {});
      return heartbeat.consoleAddresses.includes('console.example') && heartbeat;
    });
    t.is(answer.intervalSeconds, 15);
    t.is(answer.target?.config?.revision, 1n);
    t.true(Math.abs(Number(answer.serverTimeMs) - Date.now()) < 60_000);
    t.deepEqual(answer.missingFeatures, []);
    await api.ok('PUT', '/settings/node-channel', { url: '' });
  },
);

test.serial('a position that was acknowledged is not taken back by a heartbeat sent before it', async (t) => {
  const { target } = await connection.call('heartbeat', {});
  const old = target!.config!;
  await api.site(clusterId, 'positions.example');
  const next = await eventually(async () => {
    const { target: now } = await connection.call('heartbeat', {});
    return now!.config!.revision > old.revision && now!.config!;
  });
  await connection.call('applied', { config: next });
  await shown(({ applyState }) => applyState === 'applied');
  await connection.call('heartbeat', { config: old, dataPlaneHealthy: true });
  const after = await shown(({ dataPlaneHealthy }) => dataPlaneHealthy);
  t.is(after.appliedRevision, String(next.revision));
});

test.serial('entries that cannot be applied are shown with their reason', async (t) => {
  const { target } = await connection.call('heartbeat', {});
  const failed = [{ kind: 'site', id: 'a', reason: 'broken', runningHash: new Uint8Array(32) }];
  await connection.call('applied', { config: target!.config!, failed });
  const seen = await shown(({ applyState }) => applyState === 'failed');
  t.deepEqual(seen.failedEntries, [{ kind: 'site', id: 'a', running: true, reason: 'broken' }]);
  await connection.call('applied', { config: target!.config! });
  t.is((await shown(({ applyState }) => applyState !== 'failed')).applyState, 'applied');
});

test.serial('addresses follow the heartbeat and protect the node from bans', async (t) => {
  await connection.call('heartbeat', {
    info: { ipAddresses: ['203.0.113.20', '2001:db8::20', '::ffff:203.0.113.20'] },
  });
  t.deepEqual(await addresses(), ['remote 127.0.0.1', 'reported 2001:db8::20', 'reported 203.0.113.20']);
  await connection.call('heartbeat', { info: { ipAddresses: ['203.0.113.21'] } });
  t.deepEqual(await addresses(), ['remote 127.0.0.1', 'reported 203.0.113.21']);
  const ban = { scope: 'platform', cidr: '203.0.113.21', reason: 'abuse', durationSeconds: 60 };
  await api.refused(t, [400, 'BAN_PROTECTED_ADDRESS'], 'POST', '/bans', ban);
});

test.serial('a node that comes back from another process has its reports stored again', async (t) => {
  const identity = await enrollOne(running, clusterId);
  nodeId = identity.nodeId;
  const here = connectAs(running, identity);
  await new Promise<void>((resolve) => {
    here.watch(
      {},
      () => resolve(),
      () => undefined,
    );
  });
  await here.call('heartbeat', { info: { ipAddresses: ['203.0.113.31'] } });
  here.destroy();
  // What the other process stored meanwhile.
  await api.sql('node_address').where({ node_id: nodeId, source: 'reported' }).update({ address: '203.0.113.32' });
  const back = connectAs(running, identity);
  t.teardown(() => back.destroy());
  await eventually(async () => {
    await back.call('heartbeat', { info: { ipAddresses: ['203.0.113.31'] } });
    return (await addresses()).includes('reported 203.0.113.31');
  });
  t.deepEqual(await addresses(), ['remote 127.0.0.1', 'reported 203.0.113.31']);
});

test.serial('bans a node could not hold are counted until it holds them', async (t) => {
  const { id } = await api.ok('POST', '/bans', {
    scope: 'platform',
    cidr: '198.18.200.1',
    reason: 'abuse',
    durationSeconds: 600,
  });
  const unapplied = async () =>
    (await api.ok('GET', '/bans?address=198.18.200.1')).items.find((item: Body) => item.id === id).unappliedNodes;
  await connection.call('heartbeat', { bans: { unappliedIds: [id], unapplied: 1n } });
  await shown(({ online }) => online);
  t.is(await unapplied(), 1);
  await connection.call('heartbeat', { bans: {} });
  t.is(await unapplied(), 0);
});

test.serial('a batch of statistics counts once, and only for sites of the cluster', async (t) => {
  const site = await api.site(clusterId, 'counted.example');
  const foreign = await api.site(await api.cluster('foreign'), 'foreign.example');
  const minute = BigInt(Math.floor(Date.now() / 60_000) * 60);
  const minutes = [
    { siteId: site.id, minute, requests: 5n },
    { siteId: site.id, minute: minute + 7n, requests: 2n },
    { siteId: foreign.id, minute, requests: 100n },
    { siteId: 'nothing', minute, requests: 100n },
  ];
  t.is((await connection.call('reportStats', { sequence: 4n, minutes })).acknowledged, 4n);
  t.is((await connection.call('reportStats', { sequence: 4n, minutes })).acknowledged, 4n);
  t.is((await connection.call('reportStats', { sequence: 3n, minutes })).acknowledged, 4n);
  t.is((await connection.call('reportStats', { sequence: 5n, minutes: [minutes[0]!] })).acknowledged, 5n);
  t.is((await connection.call('reportStats', {})).acknowledged, 5n);
  const rows = await api
    .sql('site_minute')
    .whereIn('site_id', [site.id, foreign.id, 'nothing'])
    .where('minute', new Date(Number(minute) * 1000));
  t.deepEqual(
    rows.map(({ site_id, requests }) => [site_id, Number(requests)]),
    [[site.id, 12]],
  );
  await t.throwsAsync(connection.call('reportStats', { sequence: 2n ** 63n, minutes: [] }), {
    message: /invalid_argument/,
  });
});

/** Another node of the cluster with an open stream: the epochs of everything that it is told, and the numbers pushed. */
async function listen(t: ExecutionContext): Promise<{ epochs: Set<bigint>; pushed: bigint[] }> {
  const other = connectAs(running, await enrollOne(running, clusterId));
  t.teardown(() => other.destroy());
  const decode = createDecoder();
  const epochs = new Set<bigint>();
  const pushed: bigint[] = [];
  other.watch(
    {},
    (frame) => {
      const event = decode(frame);
      if (event.case === 'target') {
        epochs.add(event.value.config!.epoch).add(event.value.bans!.epoch);
      } else if (event.case === 'configDelta') {
        epochs.add(event.value.epoch);
        pushed.push(event.value.revision);
      } else if (event.case === 'banBatch') epochs.add(event.value.epoch);
    },
    () => undefined,
  );
  await eventually(() => epochs.size > 0);
  return { epochs, pushed };
}

const unprovenPositions = async (feed: string): Promise<number> => {
  const metric = running.running.runtime.metrics.getSingleMetric('svc_unproven_positions_total') as Counter;
  return (await metric.get()).values.find(({ labels }) => labels.feed === feed)?.value ?? 0;
};

test.serial(
  'a node that claims to be ahead starts over alone: no epoch begins, no other node hears of it',
  async (t) => {
    const others = await listen(t);
    await api.site(clusterId, 'claims.example');
    const { target } = await eventually(async () => {
      const answer = await connection.call('heartbeat', {});
      return answer.target!.config!.revision > 1n && answer;
    });
    const { epoch, revision } = target!.config!;
    const genuine = await connection.call('getConfig', {});
    const genuineBans = await connection.call('getBans', {});
    const page = genuine.result.value as ConfigPage;
    t.is(page.checkpoint!.mark.length, 16);
    t.is(genuineBans.position!.mark.length, 16);
    // With the marks of places that it really has been at.
    const config = { ...page.checkpoint!, revision: revision + 1000n };
    const bans = { ...genuineBans.position!, sequence: genuineBans.position!.sequence + 1000n };
    for (const claim of [
      { config, bans },
      { config: { ...config, mark: new Uint8Array() }, bans: { ...bans, mark: new Uint8Array() } },
    ]) {
      const answer = await connection.call('heartbeat', { config: claim.config, bans: { position: claim.bans } });
      // Its own revision with another set, another epoch of bans: it asks for what differs, and for all bans.
      t.like(answer.target!.config, { epoch, revision: config.revision });
      t.notDeepEqual(Buffer.from(answer.target!.config!.setHash), Buffer.from(config.setHash));
      t.not(answer.target!.bans!.epoch, bans.epoch);
      t.is((await connection.call('getConfig', { base: claim.config })).result.case, 'page');
      const repair = (await connection.call('getConfig', { bucketSums: new Uint8Array(4096 * 32) })).result;
      t.is(repair.case, 'repair');
      t.like(repair.value, { checkpoint: { epoch, revision, mark: page.checkpoint!.mark } });
      t.like(await connection.call('getBans', { after: claim.bans }), { reset: true, position: { epoch } });
    }
    // A token of a page that nobody gave is no way to a mark.
    const token = `s.${epoch}.${bans.sequence}.x`;
    t.is((await connection.call('getBans', { pageToken: token })).position!.sequence, genuineBans.position!.sequence);
    const repaired = { config: page.checkpoint!, bans: { position: genuineBans.position! } };
    t.deepEqual((await connection.call('heartbeat', repaired)).target!.config, target!.config);
    t.true((await unprovenPositions('config')) >= 2);
    t.true((await unprovenPositions('bans')) >= 2);

    t.is((await api.sql('console_state').first('epoch')).epoch, String(epoch));
    await api.site(clusterId, 'others.example');
    await eventually(() => others.pushed.some((number) => number > revision), { what: 'the next push' });
    t.deepEqual([...others.epochs], [epoch]);
  },
);

test.serial(
  'a node with the mark of a place that the database has forgotten begins a new epoch, and all are told',
  async (t) => {
    const others = await listen(t);
    const { target } = await connection.call('heartbeat', {});
    const { epoch, track, revision, setHash } = target!.config!;
    const marks = await positionMarks(running.running.runtime);
    const forgotten = { epoch, track, revision: revision + 1n, setHash };
    const config = { ...forgotten, mark: marks.config(clusterId, forgotten) };
    await connection.call('heartbeat', { config });
    const next = BigInt((await api.sql('console_state').first('epoch')).epoch);
    t.true(next > epoch);
    await eventually(() => others.epochs.has(next), { what: 'the others to be told' });
    // Once: the place is of an earlier epoch now.
    await connection.call('heartbeat', { config });
    t.is((await connection.call('getConfig', { base: config })).result.case, 'page');
    t.is((await api.sql('console_state').first('epoch')).epoch, String(next));
  },
);
