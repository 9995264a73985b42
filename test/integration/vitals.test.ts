// How sites that just changed fare: what is watched reaches nodes, what they tell reaches the table, and nothing else.
import test from 'ava';
import { endWatch, watchChange } from '../../models/rollouts/vital-watch.ts';
import { readBefore, readTrouble, readVitals } from '../../models/rollouts/vitals.ts';
import { type ConfigPosition, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startLocalOrigin, startNodeConsole } from '../helpers/local-edge.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

const FEATURES = ['bans-v1', 'challenge-v1', 'vitals-v1'];

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;
let nodes: ReportingNode[] = [];
let position: ConfigPosition;

test.before('start', async () => {
  running = await startNodeConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

let clusters = 0;
test.beforeEach('a cluster with a site and two nodes that run it, and nothing watched', async () => {
  clusterId = await api.cluster(`vitals-${clusters++}`);
  siteId = (await api.site(clusterId, `vitals-${clusters}.example`)).id;
  nodes = [await node(), await node()];
  position = await eventually(async () => {
    const { target } = await nodes[0]!.beat();
    return target.config.revision >= 2n && target.config;
  });
  await unwatched();
});
test.afterEach.always('disconnect', () => {
  for (const node of nodes) node.stop();
});

const node = () => ReportingNode.enroll(running, clusterId, FEATURES);
const revision = () => position.revision;

/** Ends what publications have watched. */
async function unwatched(): Promise<void> {
  await api.sql('vital_watch').delete();
  await eventually(async () => (await nodes[0]!.beat()).vitalWatch.seconds === 0);
}

async function watch(sites: { id: string; origins: boolean }[], seconds = 3600): Promise<void> {
  await watchChange(api.sql, { clusterId, revision: revision(), track: 'S', sites, seconds });
  await eventually(async () => (await nodes[0]!.beat()).vitalWatch.seconds > 0);
}

const report = (from: ReportingNode, more: object) =>
  from.connection.call('reportVitals', { dataPlaneInstance: 'one', coveredMs: 5_000, config: position, ...more });

interface Sum {
  site_id: string;
  track: string;
  revision: number;
  requests: number;
  origin: number;
  edge: number;
  restarts: number;
  failed: number;
}

async function stored(): Promise<Sum[]> {
  const { rows } = await api.sql.raw<{ rows: Sum[] }>(
    `select site_id, track, revision::int, sum(requests)::int as requests, sum(origin_5xx)::int as origin,
        sum(edge_5xx)::int as edge, sum(restarts)::int as restarts, sum(failed)::int as failed
       from vital where cluster_id = ? group by 1, 2, 3 order by 1, 2, 3`,
    [clusterId],
  );
  return rows;
}

/** Of all revisions together. */
async function sumOf(siteId: string): Promise<Pick<Sum, 'requests' | 'origin' | 'edge'>> {
  const sum = { requests: 0, origin: 0, edge: 0 };
  for (const row of await stored()) {
    if (row.site_id !== siteId) continue;
    sum.requests += row.requests;
    sum.origin += row.origin;
    sum.edge += row.edge;
  }
  return sum;
}

test.serial('what changed is watched by the nodes of its cluster until its time is over', async (t) => {
  const other = await ReportingNode.enroll(running, await api.cluster('elsewhere'), FEATURES);
  await watch([{ id: siteId, origins: false }]);
  const { vitalWatch } = await nodes[1]!.beat();
  t.deepEqual(vitalWatch.siteIds, [siteId]);
  t.true(vitalWatch.seconds > 0 && vitalWatch.seconds <= 3600);
  t.false((await other.beat()).vitalWatch.siteIds.includes(siteId));
  other.stop();
  t.deepEqual((await report(nodes[0]!, {})).vitalWatch?.siteIds, [siteId], 'an answer to a report says it, too');
  await endWatch(api.sql, clusterId, revision());
  await eventually(async () => (await nodes[0]!.beat()).vitalWatch.seconds === 0);

  await watchChange(api.sql, { clusterId, revision: revision(), track: 'S', sites: [], seconds: 1 });
  const active = api.sql('vital_watch').where({ cluster_id: clusterId }).whereRaw('until > now()');
  await eventually(async () => (await active.clone().first()) === undefined);
  await eventually(async () => (await nodes[0]!.beat()).vitalWatch.seconds === 0);
  t.is((await report(nodes[0]!, {})).vitalWatch?.seconds, 0);
});

test.serial('of a large change a hundred sites are watched, and the traffic of the nodes as a whole', async (t) => {
  const sites = Array.from({ length: 150 }, (_, index) => ({ id: `site-${index}`, origins: index === 120 }));
  await watch(sites);
  t.is((await nodes[0]!.beat()).vitalWatch.siteIds.length, 100);
  const rows = await api.sql('vital_watch').where({ cluster_id: clusterId }).select('site_id', 'origins');
  t.is(rows.length, 101);
  t.deepEqual(
    rows.filter(({ origins }) => origins),
    [{ site_id: '', origins: true }],
  );
});

test.serial('reports of nodes are added up by site, track and revision', async (t) => {
  await watch([{ id: siteId, origins: false }]);
  const vitals = (
    requests: bigint,
    errors: { originErrors?: bigint; edgeErrors?: { name: string; count: bigint }[] },
  ) => [
    { siteId: '', requests: requests * 2n, ...errors },
    { siteId, requests, ...errors },
  ];
  await report(nodes[0]!, { vitals: vitals(100n, { originErrors: 3n }), restarted: true });
  await report(nodes[1]!, { vitals: vitals(50n, { edgeErrors: [{ name: 'no-origin', count: 7n }] }), failed: 2 });
  await report(nodes[1]!, { vitals: vitals(10n, { edgeErrors: [{ name: 'no-origin', count: 1n }] }) });
  await eventually(async () => (await sumOf(siteId)).requests === 160);
  const of = { track: 'S', revision: Number(revision()), origin: 3, edge: 8 };
  t.deepEqual(await stored(), [
    { ...of, site_id: '', requests: 320, restarts: 1, failed: 2 },
    { ...of, site_id: siteId, requests: 160, restarts: 0, failed: 0 },
  ]);
  const codes = await api.sql('vital').where({ site_id: siteId }).whereRaw(`edge_codes <> '{}'`).pluck('edge_codes');
  t.is(
    codes.reduce((sum, { 'no-origin': count }) => sum + count, 0),
    8,
  );
});

test.serial('a report is believed as far as a node may know', async (t) => {
  await watch([{ id: siteId, origins: false }]);
  const one = [{ siteId, requests: 1n }];
  const [first] = nodes as [ReportingNode];
  const lies = [
    { config: { ...position, revision: position.revision + 1_000n }, vitals: one },
    { config: { ...position, epoch: position.epoch + 1n }, vitals: one },
    { config: { ...position, track: Track.UNSPECIFIED }, vitals: one },
    { config: undefined, vitals: one },
    { coveredMs: 4_000_000, vitals: one },
  ];
  for (const lie of lies) await report(first, lie);
  const errors = Array.from({ length: 5_000 }, (_, index) => ({ name: `code-${index}`, count: 2n ** 64n - 1n }));
  await report(first, {
    failed: 2 ** 32 - 1,
    vitals: [
      { siteId: 'of-somebody-else', requests: 5n },
      { siteId, requests: 2n ** 64n - 1n, originErrors: 2n ** 64n - 1n, edgeErrors: errors },
      { siteId, requests: 5n },
    ],
  });
  await eventually(async () => (await stored()).length > 0);
  const most = 2_500_000;
  const of = { track: 'S', revision: Number(revision()), restarts: 0 };
  t.deepEqual(await stored(), [
    { ...of, site_id: '', requests: 0, origin: 0, edge: 0, failed: 1_000_000 },
    { ...of, site_id: siteId, requests: most, origin: most, edge: most, failed: 0 },
  ]);
});

test.serial('a node that reports without end is heard a few times in 5 seconds', async (t) => {
  await watch([{ id: siteId, origins: false }]);
  const before = Date.now();
  for (let count = 0; count < 200; count++) await report(nodes[0]!, { vitals: [{ siteId, requests: 1n }] });
  const slots = Math.floor(Date.now() / 5_000) - Math.floor(before / 5_000) + 1;
  await report(nodes[1]!, { vitals: [{ siteId, requests: 1_000n }] });
  const sum = await eventually(async () => {
    const sum = await sumOf(siteId);
    return sum.requests >= 1_000 && sum;
  });
  t.true(sum.requests - 1_000 <= 8 * slots, `${sum.requests} in ${slots} slots`);
});

test.serial('nodes with a change are read beside nodes without, in the same time, and before it', async (t) => {
  await unwatched();
  const now = Date.now();
  const since = new Date(now - 60_000);
  const other = 'other-site';
  const sites = [
    { id: siteId, origins: true },
    { id: other, origins: false },
  ];
  await watchChange(api.sql, { clusterId, revision: 11, track: 'C', sites, seconds: 300 });
  await watchChange(api.sql, { clusterId, revision: 12, track: 'S', sites: [], seconds: 300 });
  const row = (site_id: string, ageMs: number, track: string, revision: number, more: object) => ({
    cluster_id: clusterId,
    slot: new Date(now - ageMs),
    site_id,
    track,
    revision,
    writer: 'one',
    nodes: 1,
    requests: 100,
    origin_5xx: 1,
    edge_5xx: 0,
    edge_codes: '{}',
    restarts: 0,
    failed: 0,
    ...more,
  });
  await api
    .sql('vital')
    .insert([
      row(siteId, 200_000, 'S', 9, { requests: 1_000 }),
      row(siteId, 30_000, 'S', 10, { edge_5xx: 2, edge_codes: '{"no-origin":2}' }),
      row(siteId, 30_000, 'S', 10, { writer: 'two', edge_5xx: 1, edge_codes: '{"no-origin":1}' }),
      row(siteId, 20_000, 'S', 10, {}),
      row(siteId, 30_000, 'C', 11, { edge_5xx: 3, edge_codes: '{"no-origin":2,"internal-error":1}' }),
      row(siteId, 20_000, 'C', 12, {}),
      row(siteId, 20_000, 'C', 10, { requests: 1 }),
      row('not-watched', 20_000, 'C', 11, {}),
      row('', 30_000, 'C', 11, { restarts: 1, failed: 2 }),
      row('', 20_000, 'C', 11, { restarts: 1, failed: 1 }),
    ]);
  const nothing = { nodes: 0, requests: 0, origin5xx: 0, edgeCodes: {}, restarts: 0, failed: 0 };
  const calm = { restarts: 0, failed: 0 };
  t.deepEqual(await readVitals(api.sql, { clusterId, revision: 11, canary: true, since }), {
    concernsAll: false,
    sites: [
      {
        siteId: '',
        origins: false,
        changed: { nodes: 1, requests: 200, origin5xx: 2, edgeCodes: {}, restarts: 2, failed: 2 },
        lacking: nothing,
      },
      { siteId: other, origins: false, changed: nothing, lacking: nothing },
      {
        siteId,
        origins: true,
        changed: { nodes: 1, requests: 200, origin5xx: 2, edgeCodes: { 'no-origin': 2, 'internal-error': 1 }, ...calm },
        lacking: { nodes: 2, requests: 300, origin5xx: 3, edgeCodes: { 'no-origin': 3 }, ...calm },
      },
    ].sort((a, b) => (a.siteId < b.siteId ? -1 : 1)),
  });
  const direct = await readVitals(api.sql, { clusterId, revision: 12, canary: false, since });
  t.true(direct.concernsAll, 'a change of no site is one of the cluster');
  t.like(direct.sites, [{ siteId: '', changed: { requests: 0 }, lacking: { requests: 200 } }]);
  t.like(direct.sites, [{ siteId: '', changed: { requests: 0 }, lacking: { requests: 200 } }]);
  await api
    .sql('vital')
    .insert([
      row(siteId, 5_000, 'S', 12, { requests: 7 }),
      row(siteId, 5_000, 'S', 13, { requests: 8 }),
      row(siteId, 5_000, 'S', 14, { requests: 9 }),
    ]);
  const changes = [
    { revision: 12, sites: [{ id: siteId, origins: false }] },
    { revision: 13, sites: [{ id: other, origins: false }] },
    { revision: 14, sites: [{ id: siteId, origins: false }] },
  ];
  for (const one of changes) await watchChange(api.sql, { clusterId, track: 'S', seconds: 300, ...one });
  const first = await readVitals(api.sql, { clusterId, revision: 12, canary: false, since });
  const changed = first.sites.find((site) => site.siteId === siteId)?.changed.requests;
  t.is(changed, 115, 'up to the next change of the same site');
  const trouble = await readTrouble(api.sql, 3600);
  t.true(trouble.has(clusterId, [other]), 'data planes of the cluster died');
  await api.sql('vital').where({ cluster_id: clusterId }).update({ restarts: 0 });
  const less = await readTrouble(api.sql, 3600);
  t.false(less.has(clusterId, [other]));
  t.true(less.has(clusterId, [other, siteId]));
  const before = await readBefore(api.sql, clusterId, since, [siteId, other]);
  t.deepEqual([...before], [[siteId, { nodes: 0, requests: 1_000, origin5xx: 1, edgeCodes: {} }]]);
});

test.serial('before a change is nothing that was tried by a canary or taken back', async (t) => {
  const slot = new Date(Math.floor(Date.now() / 5_000) * 5_000 - 60_000);
  const row = {
    cluster_id: clusterId,
    slot,
    site_id: siteId,
    writer: 'w',
    nodes: 1,
    edge_5xx: 0,
    edge_codes: '{}',
    restarts: 0,
    failed: 0,
  };
  await api.sql('vital').insert([
    { ...row, track: 'S', revision: 40, requests: 300, origin_5xx: 1 },
    { ...row, track: 'C', revision: 41, requests: 500, origin_5xx: 500 },
    { ...row, track: 'S', revision: 42, requests: 500, origin_5xx: 500 },
    { ...row, track: 'S', revision: 43, requests: 200, origin_5xx: 1 },
  ]);
  const { epoch } = await api.sql('cluster_head').where({ cluster_id: clusterId }).first();
  const undone = {
    reason: 'change_undone',
    params: { revision: '42' },
    actor: {},
    set_hash: Buffer.alloc(32),
    entry_count: 0,
  };
  await api.sql('config_revision').insert({ cluster_id: clusterId, epoch, number: 43, ...undone });
  const minute = BigInt(Math.floor(Date.now() / 60_000 - 3) * 60);
  await nodes[0]!.connection.call('reportStats', { sequence: 1n, minutes: [{ siteId, minute, requests: 17n }] });
  const before = await readBefore(api.sql, clusterId, new Date(), [siteId]);
  t.deepEqual(
    [...before],
    [[siteId, { nodes: 0, requests: 500, origin5xx: 2, edgeCodes: {} }]],
    'more than the minutes',
  );
});

test.serial('before a change is what nodes counted by the minute, where they did', async (t) => {
  const since = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 5_000);
  const minute = (ago: number) => BigInt(Math.floor(since.getTime() / 60_000 - ago) * 60);
  const minutes = [
    {
      siteId,
      minute: minute(2),
      requests: 120n,
      statuses: [
        { code: 200, count: 60n },
        { code: 500, count: 10n },
        { code: 502, count: 20n },
        { code: 503, count: 10n },
      ],
      counts: [
        { name: 'blocked.ban', count: 5n },
        { name: 'challenge.shown.js', count: 4n },
        { name: 'challenge.passed.js', count: 3n },
        { name: 'error.origin-unreachable', count: 20n },
        { name: 'error.site-disabled', count: 10n },
      ],
    },
    { siteId, minute: minute(3), requests: 30n, statuses: [{ code: 500, count: 1n }] },
    { siteId, minute: minute(30), requests: 1_000n },
    { siteId, minute: minute(0), requests: 1_000n },
  ];
  await nodes[0]!.connection.call('reportStats', { sequence: 1n, minutes });
  const figures = { nodes: 0, requests: 131, origin5xx: 11, edgeCodes: { 'origin-unreachable': 20 } };
  t.deepEqual([...(await readBefore(api.sql, clusterId, since, ['', siteId]))].sort(), [
    ['', figures],
    [siteId, figures],
  ]);
});

test.serial('a real edge tells who made the errors of a watched site', async (t) => {
  const { address, port, server } = await startLocalOrigin(t, api, (_request, response) => {
    response.statusCode = 500;
    response.end();
  });
  const edge = await startLocalEdge(t, running, clusterId);
  siteId = (await api.site(clusterId, 'real.example', { origins: [{ address, port }] })).id;
  const ask = () => edge.ask('real.example');
  await eventually(async () => (await ask()).status === 500);
  await watch([{ id: siteId, origins: false }]);
  // Nodes hear of it after they applied something, or with the next heartbeat.
  await api.site(clusterId, 'applied-later.example');
  const told = await eventually(async () => {
    await ask();
    const sum = await sumOf(siteId);
    return sum.origin > 0 && sum;
  });
  t.true(told.requests >= told.origin);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await eventually(async () => {
    const { status } = await ask();
    return status === 502 && (await sumOf(siteId)).edge > 0;
  });
  const codes = await api.sql('vital').where({ site_id: siteId }).pluck('edge_codes');
  t.true(codes.some((counts) => counts['origin-unreachable'] > 0));
});
