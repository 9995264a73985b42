// What nodes report about attacks over the channel, and what is shown and alerted of it.
import test from 'ava';
import type { Connection } from '../../bench/fleet/connection.ts';
import { countDay } from '../../models/db/counted-logs.ts';
import { partitionsOf } from '../../models/db/partitions.ts';
import { purgeSecurityHeavy } from '../../models/db/sweeps.ts';
import {
  dropOldSecurityPartitions,
  makeSecurityPartitions,
  SECURITY_EVENTS,
} from '../../models/security/security-partitions.ts';
import { reviewCcAlerts, storeSecurityReport } from '../../models/security/security-report.ts';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let runtime: Runtime;
let clusterId: string;
let foreign: string;
let siteId: string;
let nodeId: string;
let connection: Connection;
let count = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  runtime = running.running.runtime;
  clusterId = await api.cluster('attacked');
  foreign = (await api.site(await api.cluster('elsewhere'), 'foreign.example')).id;
  const identity = await enrollOne(running, clusterId, ['challenge-v1']);
  nodeId = identity.nodeId;
  connection = connectAs(running, identity);
  await connection.call('heartbeat', { info: { features: ['challenge-v1'] } });
  await eventually(async () => (await api.ok('GET', `/nodes/${nodeId}`)).online);
});
test.after.always('stop', async () => {
  connection?.destroy();
  await running?.stop();
});
test.beforeEach('a site of its own', async () => {
  siteId = (await api.site(clusterId, `attacked-${count++}.example`)).id;
});

const MINUTE = 60_000;
const DAY = 86_400_000;
let sequence = 0;
const event = (more: Body = {}): Body => ({
  id: `boot-${sequence++}`,
  siteId,
  kind: SecurityEventKind.SITE_LEVEL,
  occurredAtMs: BigInt(Date.now()),
  level: 1,
  previousLevel: 0,
  metric: 'site_qps',
  observed: 1500.5,
  threshold: 1000,
  ...more,
});
const report = (events: Body[], sites?: Body[]) =>
  connection.call('reportSecurity', sites ? { events, sites, hasState: true } : { events });
const events = async (query = ''): Promise<Body> => api.ok('GET', `/sites/${siteId}/security/events?${query}`);
const state = async (query = ''): Promise<Body> => api.ok('GET', `/sites/${siteId}/security?${query}`);
const ownNode = async (): Promise<Body> => (await state()).nodes.find(({ id }: Body) => id === nodeId);

test.serial('events of foreign sites, and events older than the retention, make no partition', async (t) => {
  const partitions = async () =>
    (await api.sql.raw("select relid::text from pg_partition_tree('security_event') where isleaf order by 1")).rows;
  const before = await partitions();
  const daysAgo = (days: number) => BigInt(Date.now() - days * DAY);
  await report([
    ...[20, 21, 22].map((days) => event({ siteId: foreign, occurredAtMs: daysAgo(days) })),
    ...[31, 100, 364].map((days) => event({ occurredAtMs: daysAgo(days) })),
  ]);
  t.deepEqual(await partitions(), before);
  t.is((await events()).total, 0);
  await report([event()]);
  t.is((await events()).total, 1);
});

test.serial('events of each kind are stored as they were reported, newest first', async (t) => {
  const now = Date.now();
  const top = { topIps: [{ value: '203.0.113.1', count: 90n }], topPaths: [{ value: '/login', count: 80n }] };
  await report([
    event({ occurredAtMs: BigInt(now - 3000), ...top }),
    event({
      kind: SecurityEventKind.PATH_LEVEL,
      occurredAtMs: BigInt(now - 2000),
      path: '/login',
      level: 3,
      previousLevel: 2,
      metric: 'url_qps',
    }),
    event({
      kind: SecurityEventKind.IP_BANNED,
      occurredAtMs: BigInt(now - 1000),
      address: '2001:db8:1::/64',
      metric: 'ip_qps',
      level: 2,
      previousLevel: 2,
    }),
  ]);
  const { items, total } = await events();
  t.is(total, 3);
  const [banned, path, site] = items;
  t.like(site, {
    node: { id: nodeId, name: site.node.name },
    occurredAt: new Date(now - 3000).toISOString(),
    kind: 'site_level',
    level: 'cookie302',
    previousLevel: 'normal',
    path: null,
    address: null,
    metric: 'site_qps',
    observed: 1500.5,
    threshold: 1000,
    topIps: [{ value: '203.0.113.1', count: 90 }],
    topPaths: [{ value: '/login', count: 80 }],
  });
  t.like(path, { kind: 'path_level', path: '/login', level: 'pow', previousLevel: 'js', address: null });
  t.like(banned, { kind: 'ip_banned', address: '2001:db8:1::/64', level: 'js', path: null, topIps: [] });
  for (const kind of ['site_level', 'path_level', 'ip_banned']) {
    const page = await events(`kind=${kind}`);
    t.deepEqual([page.total, page.items[0].kind], [1, kind]);
  }
  const second = await events('pageSize=1&page=2');
  t.deepEqual([second.total, second.items.length, second.items[0].kind], [3, 1, 'path_level']);
  await api.badField(t, '/kind', 'GET', `/sites/${siteId}/security/events?kind=other`);
  await api.badField(t, '/pageSize', 'GET', `/sites/${siteId}/security/events?pageSize=101`);
});

test.serial('an event reported twice is stored once, also with a wrong clock and in another order', async (t) => {
  const ahead = BigInt(Date.now() + 3 * 3_600_000);
  const [first, second] = [event({ occurredAtMs: ahead }), event()];
  await report([second]);
  await report([first, second, first]);
  await Promise.all([report([first]), report([second, first])]);
  const { items, total } = await events();
  t.is(total, 2);
  for (const { occurredAt } of items) t.true(Date.parse(occurredAt) <= Date.now());
});

test.serial('what makes no sense is left out, and a report beyond its limits is refused', async (t) => {
  await report([
    event({ siteId: foreign }),
    event({ siteId: 'nobody' }),
    event({ siteId: 'a\0b' }),
    event({ id: '' }),
    event({ id: 'x y' }),
    event({ kind: SecurityEventKind.UNSPECIFIED }),
    event({ level: 5 }),
    event({ previousLevel: 5 }),
    event({ occurredAtMs: 0n }),
    event({ occurredAtMs: -(2n ** 62n) }),
    event({ metric: 'nul\0', observed: Number.NaN, threshold: Number.POSITIVE_INFINITY }),
    event({
      kind: SecurityEventKind.PATH_LEVEL,
      path: `/${'x'.repeat(5000)}😀`,
      topIps: Array.from({ length: 20 }, (_, n) => ({ value: `10.0.0.${n}`, count: n === 0 ? 2n ** 63n : 1n })),
    }),
    event({ kind: SecurityEventKind.IP_BANNED, address: 'nonsense' }),
  ]);
  const { items, total } = await events();
  t.is(total, 3);
  const path = items.find(({ kind }: Body) => kind === 'path_level');
  t.deepEqual([path.path.length, path.topIps.length], [2048, 10]);
  t.like(
    items.find(({ kind }: Body) => kind === 'site_level'),
    { metric: 'nul', observed: null, threshold: null },
  );
  t.is(items.find(({ kind }: Body) => kind === 'ip_banned').address, null);
  await t.throwsAsync(report(Array.from({ length: 501 }, () => event())), { message: /at most 500 events/ });
  const sites = Array.from({ length: 2001 }, (_, n) => ({ siteId: `s${n}`, level: 1 }));
  await t.throwsAsync(report([], sites), { message: /at most 2000 sites/ });
  t.is((await events()).total, 3);
});

test.serial('the state of a node is replaced as a whole', async (t) => {
  const other = (await api.site(clusterId, `other-${count}.example`)).id;
  t.like(await ownNode(), { online: true, level: 'normal', escalatedPaths: [] });
  const paths = [
    { path: '/a', level: 2 },
    { path: '/b', level: 4 },
  ];
  await report(
    [],
    [
      { siteId, level: 3, paths },
      { siteId: other, level: 1 },
      { siteId: foreign, level: 4 },
    ],
  );
  const raised = await ownNode();
  t.like(raised, { level: 'pow' });
  t.deepEqual(raised.escalatedPaths, [
    { path: '/a', level: 'js' },
    { path: '/b', level: 'captcha' },
  ]);
  t.true(Math.abs(Date.parse(raised.reportedAt) - Date.now()) < 60_000);
  t.is((await api.sql('site_security').where({ site_id: foreign })).length, 0);
  // Events alone leave it as it is, and are a report.
  await report([event({ siteId: other })]);
  t.is((await ownNode()).level, 'pow');
  t.true(Date.parse((await ownNode()).reportedAt) > Date.parse(raised.reportedAt));
  await report([], [{ siteId, level: 0, paths: [{ path: '/a', level: 1 }] }]);
  t.like(await ownNode(), { level: 'normal', escalatedPaths: [{ path: '/a', level: 'cookie302' }] });
  t.is((await api.sql('site_security').where({ node_id: nodeId })).length, 1);
  await report([], []);
  t.like(await ownNode(), { level: 'normal', escalatedPaths: [] });
});

test.serial('every active node of the cluster is listed, also one that never reported', async (t) => {
  const names = [];
  for (const [name, more] of [
    ['quiet', {}],
    ['away', { online: false }],
    ['off', { status: 'disabled' as const }],
  ] as const) {
    names.push(await api.node(clusterId, name, more));
  }
  const { nodes } = await state();
  const byName = new Map(nodes.map((node: Body) => [node.name, node]));
  t.like(byName.get('quiet'), { online: true, level: 'normal', escalatedPaths: [], reportedAt: null });
  t.like(byName.get('away'), { online: false });
  t.false(byName.has('off'));
  await api.sql('node').whereIn('id', names).delete();
});

test.serial('top addresses and paths are summed over the events of the last hours', async (t) => {
  const now = Date.now();
  const at = (hours: number, value: string, weight: bigint) =>
    event({
      occurredAtMs: BigInt(now - hours * 3_600_000 + MINUTE),
      topIps: [{ value, count: weight }],
      topPaths: [{ value: `/${value}`, count: weight }],
    });
  await report([
    at(1, '10.0.0.1', 5n),
    at(1, '10.0.0.2', 4n),
    at(5, '10.0.0.2', 4n),
    at(30, '10.0.0.3', 100n),
    event({ topIps: Array.from({ length: 10 }, (_, n) => ({ value: `10.1.0.${n}`, count: 1n })) }),
  ]);
  const day = await state();
  t.is(day.hours, 24);
  t.is(day.topIps.length, 10);
  t.deepEqual(day.topIps.slice(0, 2), [
    { value: '10.0.0.2', count: 8 },
    { value: '10.0.0.1', count: 5 },
  ]);
  t.deepEqual(day.topPaths[0], { value: '/10.0.0.2', count: 8 });
  t.deepEqual((await state('hours=1')).topIps[0], { value: '10.0.0.1', count: 5 });
  t.deepEqual((await state('hours=168')).topIps[0], { value: '10.0.0.3', count: 100 });
  for (const hours of ['0', '169', 'x'])
    await api.badField(t, '/hours', 'GET', `/sites/${siteId}/security?hours=${hours}`);
});

test.serial('top addresses are of all events of the hours, however many came after', async (t) => {
  const now = Date.now();
  const heavy = (value: string, weight: bigint, ago: number) =>
    event({ occurredAtMs: BigInt(now - ago), topIps: [{ value, count: weight }] });
  await report([heavy('10.2.0.1', 1_000_000n, 3 * 3_600_000)]);
  for (let round = 0; round < 5; round++) {
    await report(Array.from({ length: 500 }, () => heavy('10.2.0.2', 1n, MINUTE)));
  }
  t.deepEqual((await state()).topIps, [
    { value: '10.2.0.1', count: 1_000_000 },
    { value: '10.2.0.2', count: 2500 },
  ]);
  t.deepEqual((await state('hours=1')).topIps, [{ value: '10.2.0.2', count: 2500 }]);
});

test.serial('what a minute keeps of a site is bounded, the heaviest of it, and ends after a week', async (t) => {
  const now = Math.floor(Date.now() / MINUTE) * MINUTE - MINUTE;
  const told = (first: number, weight: bigint) =>
    event({
      occurredAtMs: BigInt(now),
      topIps: Array.from({ length: 10 }, (_, n) => ({ value: `10.3.${first}.${n}`, count: weight + BigInt(n) })),
    });
  await report(Array.from({ length: 20 }, (_, n) => told(n, BigInt(n * 100))));
  await report([told(19, 5000n), told(0, 0n)]);
  const rows = () => api.sql('security_heavy').where({ site_id: siteId, kind: 'address' });
  t.is((await rows()).length, 32);
  const { topIps } = await state('hours=1');
  t.deepEqual(topIps[0], { value: '10.3.19.9', count: 1909 + 5009 });
  await api
    .sql('security_heavy')
    .where({ site_id: siteId })
    .update({ minute: new Date(now - 8 * DAY) });
  await purgeSecurityHeavy(api.sql);
  t.is((await rows()).length, 0);
});

test.serial('a total of events is exact whatever days are counted already', async (t) => {
  const days = (count: number, kind = SecurityEventKind.SITE_LEVEL) =>
    Array.from({ length: count }, (_, n) =>
      event({ kind, occurredAtMs: BigInt(Date.now() - n * DAY - 1000), path: '/' }),
    );
  const totals = async () => [(await events()).total, (await events('kind=path_level')).total];
  await report([...days(6), ...days(3, SecurityEventKind.PATH_LEVEL)]);
  t.deepEqual(await totals(), [9, 3]);
  while (await countDay(api.sql, 'security_event', new Date()));
  t.true((await api.sql('security_event_day').where({ site_id: siteId })).length > 0);
  t.deepEqual(await totals(), [9, 3]);
  await report([...days(4), ...days(2, SecurityEventKind.PATH_LEVEL)]);
  t.deepEqual(await totals(), [15, 5]);
});

test.serial('a missing site is refused', async (t) => {
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/security');
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/security/events');
});

test.serial('events outlive their node, which is null then', async (t) => {
  const id = await api.node(clusterId, 'leaving');
  const [one] = [event()];
  await storeSecurityReport(
    runtime.pools.channel,
    { nodeId: id, clusterId },
    {
      events: [
        { ...one, kind: 'site_level', occurredAt: new Date(), path: null, address: null, topIps: [], topPaths: [] },
      ].map(({ occurredAtMs: _, ...rest }) => rest) as never,
      sites: [{ siteId, level: 1, paths: [] }],
      dropped: 0n,
    },
    new Date(),
  );
  t.is((await events()).items[0].node.name, 'leaving');
  await api.sql('node').where({ id }).delete();
  t.is((await events()).items[0].node, null);
});

test.serial('days are made ahead and dropped when the settings say so', async (t) => {
  const { sql } = api;
  const now = new Date();
  const day = (offset: number) =>
    `security_event_${new Date(now.getTime() + offset * DAY).toISOString().slice(0, 10).replaceAll('-', '')}`;
  await makeSecurityPartitions(sql, now);
  await makeSecurityPartitions(sql, now);
  const made = (await partitionsOf(sql, SECURITY_EVENTS)).map(({ name }) => name);
  for (const offset of [0, 1, 7]) t.true(made.includes(day(offset)), day(offset));
  // A node that was away for a while makes its days itself.
  await report([
    event({ occurredAtMs: BigInt(now.getTime() - 20 * DAY) }),
    event({ occurredAtMs: BigInt(now.getTime() - 9 * DAY) }),
  ]);
  t.is((await events()).total, 2);
  t.deepEqual(await dropOldSecurityPartitions(sql, now), []);
  await api.ok('PUT', '/settings/protection', { eventRetentionDays: 10 });
  t.deepEqual(await dropOldSecurityPartitions(sql, now), [day(-20)]);
  t.is((await events()).total, 1);
  await api.ok('PUT', '/settings/protection', { eventRetentionDays: 7 });
  t.deepEqual(await dropOldSecurityPartitions(sql, now), [day(-9)]);
  t.is((await events()).total, 0);
  await api.ok('PUT', '/settings/protection', { eventRetentionDays: 30 });
});

test.serial('the alert cc_mitigation: at most once in 15 minutes, a held back raise fires later', async (t) => {
  const { sql } = api;
  const id = await api.node(clusterId, 'alerting');
  const second = await api.node(clusterId, 'alerting-too');
  const start = Date.now();
  /** A node's levels at a minute after the start; everybody is online. */
  const at = async (minute: number, level: number | null, from = id) => {
    const now = new Date(start + minute * MINUTE);
    await sql('node_state').whereIn('node_id', [id, second]).update({ last_seen_at: now });
    if (level === null) await reviewCcAlerts(sql, now);
    else {
      const sites = level > 0 ? [{ siteId, level, paths: [] }] : [];
      await storeSecurityReport(
        runtime.pools.channel,
        { nodeId: from, clusterId },
        { events: [], sites, dropped: 0n },
        now,
      );
    }
  };
  /** Minutes after the start at which alerts began, with a mark for those that go on. */
  const alerts = async () =>
    (await sql('alert').where({ site_id: siteId, kind: 'cc_mitigation' }).orderBy('started_at')).map(
      (row) => `${Math.round((row.started_at.getTime() - start) / MINUTE)}${row.resolved_at ? '' : '+'}`,
    );
  const rows: readonly (readonly [string, number, number | null, string, string?])[] = [
    ['leaves normal', 0, 1, '0+'],
    ['rises further', 1, 3, '0+'],
    ['on another node', 1, 1, '0+', second],
    ['one node recovers', 2, 0, '0+'],
    ['the last one recovers', 3, 0, '0', second],
    ['leaves normal within 15 minutes: held back', 4, 2, '0'],
    ['too early', 14, null, '0'],
    ['the window is over and it has not recovered', 15, null, '0,15+'],
    ['recovers', 16, 0, '0,15'],
    ['leaves normal again: held back', 17, 2, '0,15'],
    ['recovers in the window', 18, 0, '0,15'],
    ['the window is over', 31, null, '0,15'],
    ['leaves normal', 32, 1, '0,15,32+'],
    ['goes on', 60, null, '0,15,32+'],
  ];
  for (const [what, minute, level, expected, from] of rows) {
    await at(minute, level, from);
    t.is((await alerts()).join(), expected, what);
  }
  // A node that is gone for good holds no alert open.
  await sql('node_state')
    .whereIn('node_id', [id, second])
    .update({ last_seen_at: new Date(0) });
  await reviewCcAlerts(sql, new Date(start + 61 * MINUTE));
  t.is((await alerts()).join(), '0,15,32');
  t.is((await sql('alert_held').select()).length, 0);
  await sql('node').whereIn('id', [id, second]).delete();
});

test.serial('a site that left normal and was back before the report raises the alert, too', async (t) => {
  await report([event({ level: 1 }), event({ level: 0, previousLevel: 1, metric: 'cooldown' })], []);
  const rows = await api.sql('alert').where({ site_id: siteId });
  t.deepEqual(
    rows.map(({ kind, resolved_at: resolved }) => [kind, resolved !== null]),
    [['cc_mitigation', true]],
  );
  await report([event({ kind: SecurityEventKind.PATH_LEVEL, path: '/', siteId })], []);
  t.is((await api.sql('alert').where({ site_id: siteId })).length, 1);
});

test.serial('nodes that report one site at the same moment raise one alert', async (t) => {
  const ids = await Promise.all(['a', 'b', 'c'].map((name) => api.node(clusterId, `together-${name}`)));
  const now = new Date();
  await Promise.all(
    [...ids, ...ids, ...ids].map((id) =>
      storeSecurityReport(
        runtime.pools.channel,
        { nodeId: id, clusterId },
        { events: [], sites: [{ siteId, level: 1, paths: [] }], dropped: 0n },
        now,
      ),
    ),
  );
  await Promise.all([reviewCcAlerts(api.sql, now), reviewCcAlerts(api.sql, now)]);
  t.is((await api.sql('alert').where({ site_id: siteId })).length, 1);
  await api.sql('node').whereIn('id', ids).delete();
});

test.serial('incidents: what is above normal, newest automatic bans and heavy addresses of all sites', async (t) => {
  const away = await api.node(clusterId, 'silent', { online: false });
  const calm = (await api.site(clusterId, `calm-${count}.example`)).id;
  await api.sql('site_security').insert({ node_id: away, site_id: calm, level: 4, paths: '[]', since: new Date() });
  await api.sql('site_request_minute').insert({
    site_id: siteId,
    minute: new Date(Math.floor(Date.now() / MINUTE) * MINUTE - MINUTE),
    requests: 600,
  });
  await connection.call('reportBans', { bans: [ownBan('203.0.113.77')] });
  await report(
    [event({ topIps: [{ value: '203.0.113.77', count: 1_000_000n }] })],
    [{ siteId, level: 2, paths: [{ path: '/x', level: 3 }] }],
  );
  await api.ok('PATCH', `/sites/${siteId}/protection`, { underAttack: true });
  const incidents = await api.ok('GET', '/incidents');
  t.like(incidents, { underAttack: false, sitesUnderAttack: 1, total: 1 });
  t.is(incidents.sites.length, 1);
  const [site] = incidents.sites;
  t.like(site, {
    siteId,
    clusterId,
    clusterName: 'attacked',
    level: 'js',
    escalatedPaths: 1,
    nodeCount: 1,
    requestsPerSecond: 10,
    // As in the event.
    peakRequestsPerSecond: 1500.5,
    bansPerMinute: 0.2,
  });
  t.deepEqual(
    site.nodes.map(({ id, level }: Body) => [id, level]),
    [[nodeId, 'js']],
  );
  t.like(incidents.bans[0], { cidr: '203.0.113.77/32', siteId, reason: 'cc_ip_rate', node: { id: nodeId } });
  t.true(incidents.topIps.some(({ value, count }: Body) => value === '203.0.113.77' && count === 1_000_000));
  const elsewhere = await api.ok('GET', `/incidents?clusterId=${(await api.ok('GET', `/sites/${foreign}`)).clusterId}`);
  t.like(elsewhere, { total: 0, sites: [], sitesUnderAttack: 0, topIps: [] });
  await report([], []);
  t.is((await api.ok('GET', '/incidents')).total, 0);
});

const ownBan = (cidr: string, more: Body = {}): Body => ({
  siteId,
  cidr,
  createdAtMs: BigInt(Date.now()),
  expiresAtMs: BigInt(Date.now() + 10 * MINUTE),
  reason: 'cc_ip_rate',
  metric: 'ip_qps',
  observed: 120n,
  threshold: 50n,
  windowSeconds: 10,
  ...more,
});
const bans = async (): Promise<Body[]> => (await api.ok('GET', `/bans?source=auto&siteId=${siteId}`)).items;

test.serial(
  'a ban that a node made is there when the report is answered, and once however often it comes',
  async (t) => {
    const ban = ownBan('203.0.113.5');
    await connection.call('reportBans', { bans: [ban] });
    const [stored] = await bans();
    t.like(stored, {
      scope: 'site',
      cidr: '203.0.113.5/32',
      reason: 'cc_ip_rate',
      source: 'auto',
      node: { id: nodeId, name: stored.node.name },
      trigger: { metric: 'ip_qps', observed: 120, threshold: 50, windowSeconds: 10 },
      distributed: true,
    });
    await Promise.all([
      connection.call('reportBans', { bans: [ban, ban] }),
      connection.call('reportBans', { bans: [ban] }),
    ]);
    t.deepEqual(await bans(), [stored]);
    t.is((await api.audit(stored.id)).length, 0);
    await api.ok('DELETE', `/bans/${stored.id}`);
    await connection.call('reportBans', { bans: [ban] });
    t.deepEqual(await bans(), []);
  },
);

test.serial('bans that are none are left out; more than a thousand are refused', async (t) => {
  await connection.call('reportBans', {
    bans: [
      ownBan('nonsense'),
      ownBan('203.0.113.0/24'),
      ownBan('203.0.113.6', { expiresAtMs: 2n ** 62n }),
      ownBan('203.0.113.6', { createdAtMs: -1n }),
      ownBan('203.0.113.6', { siteId: 'a\0b' }),
      ownBan('203.0.113.6', { siteId: foreign }),
      ownBan('203.0.113.6', { reason: 'spam' }),
      ownBan('203.0.113.7', { metric: `m\0${'x'.repeat(100)}`, observed: 2n ** 64n - 1n }),
    ],
  });
  const stored = await bans();
  t.deepEqual(
    stored.map(({ cidr }) => cidr),
    ['203.0.113.7/32'],
  );
  t.is(stored[0].trigger.metric.length, 64);
  await connection.call('reportBans', {});
  const many = Array.from({ length: 1001 }, (_, n) => ownBan(`10.9.${n >> 8}.${n & 255}`));
  await t.throwsAsync(connection.call('reportBans', { bans: many }), { message: /at most 1000 bans/ });
  await connection.call('reportBans', { bans: many.slice(0, 1000) });
  t.is((await api.ok('GET', `/bans?source=auto&siteId=${siteId}`)).total, 1001);
});

const rehearse = async (change: Body): Promise<Body> =>
  (await api.ok('POST', `/sites/${siteId}/protection/rehearse`, change)).answers;
const OFF = { enabled: true, followTemplate: false, siteQps: 0, urlQps: 0, ipQps: 0, originErrorPercent: 0 };
const protect = (change: Body) => api.ok('PATCH', `/sites/${siteId}/protection`, change);
/** Requests of the site in minutes of the last hour that every node has had the time to report. */
const requests = async (counts: readonly number[]): Promise<void> => {
  const first = Math.floor(Date.now() / MINUTE) * MINUTE - 20 * MINUTE;
  for (const [n, count] of counts.entries()) {
    const minute = new Date(first + n * MINUTE);
    await api.sql('site_request_minute').insert({ site_id: siteId, minute, requests: count });
    await api
      .sql('cluster_request_minute')
      .insert({ cluster_id: clusterId, minute, requests: count })
      .onConflict(['cluster_id', 'minute'])
      .merge();
  }
};

test.serial('a rehearsal says that there is no data where nobody has reported any', async (t) => {
  await protect({ cc: OFF });
  await api.sql('cluster_request_minute').where({ cluster_id: clusterId }).delete();
  const answers = await rehearse({
    powDifficulty: 18,
    cc: { siteQps: 300, urlQps: 60, ipQps: 20, originErrorPercent: 30, ipBanSeconds: 3600 },
  });
  t.deepEqual(answers, [
    { question: 'clients_banned', count: null, were: 0, lacks: 'no_events' },
    { question: 'bans_ended', count: 0, were: 0, lacks: null },
    { question: 'sites_raised', count: null, were: 0, lacks: 'no_reports' },
    { question: 'sites_raised_by_errors', count: null, were: 0, lacks: 'no_events' },
    { question: 'paths_raised', count: null, were: 0, lacks: 'no_events' },
    { question: 'challenges', count: null, were: null, lacks: 'not_reported' },
  ]);
});

test.serial('a rehearsal answers only what the change is about, and writes nothing', async (t) => {
  await protect({ cc: { ...OFF, ipQps: 50 } });
  const before = await api.ok('GET', `/sites/${siteId}/protection`);
  const entries = await api.audit(siteId);
  t.deepEqual(await rehearse({}), []);
  t.deepEqual(await rehearse({ underAttack: true, logJa4: true }), []);
  t.deepEqual(await rehearse({ cc: { ipQps: 50, cooldownSeconds: 9 } }), []);
  // A threshold of 0 bans nobody, whatever was reported.
  t.deepEqual(await rehearse({ cc: { ipQps: 0 } }), [{ question: 'clients_banned', count: 0, were: 0, lacks: null }]);
  t.deepEqual(await rehearse({ cc: { enabled: false } }), await rehearse({ cc: { ipQps: 0 } }));
  t.deepEqual(await api.ok('GET', `/sites/${siteId}/protection`), before);
  t.deepEqual(await api.audit(siteId), entries);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'POST', '/sites/none/protection/rehearse', {});
  const path = `/sites/${siteId}/protection/rehearse`;
  await api.badField(t, '/cc/ipQps', 'POST', path, { cc: { ipQps: -1 } });
  await api.refused(t, [400, 'PROTECTION_POW_DIFFICULTY'], 'POST', path, { powDifficulty: 24, powHighDifficulty: 8 });
});

test.serial('clients and paths are counted from events and from what weighed most in them, each once', async (t) => {
  await protect({ cc: { ...OFF, ipQps: 200, urlQps: 900 } });
  const banned = { kind: SecurityEventKind.IP_BANNED, metric: 'ip_qps', level: 1, previousLevel: 1, threshold: 200 };
  await report([
    event({ ...banned, observed: 210, address: '203.0.113.1' }),
    event({ ...banned, observed: 250, address: '203.0.113.1' }),
    event({ ...banned, observed: 205, address: '2001:db8:5::/64' }),
    event({
      metric: 'origin_error_rate',
      observed: 40,
      threshold: 30,
      // About ten seconds' worth of requests: 60, 25 and 5 a second.
      topIps: [
        { value: '203.0.113.1', count: 600n },
        { value: '203.0.113.2', count: 250n },
        { value: '203.0.113.3', count: 50n },
      ],
      topPaths: [
        { value: '/login', count: 700n },
        { value: '/', count: 100n },
      ],
    }),
    event({ occurredAtMs: BigInt(Date.now() - 2 * 3_600_000), topIps: [{ value: '203.0.113.9', count: 9000n }] }),
  ]);
  const count = async (cc: Body) => {
    const [answer] = await rehearse({ cc });
    return [answer.count, answer.were];
  };
  t.deepEqual(await count({ ipQps: 20 }), [3, 2]);
  t.deepEqual(await count({ ipQps: 100 }), [2, 2]);
  t.deepEqual(await count({ ipQps: 220 }), [1, 2]);
  t.deepEqual(await count({ ipQps: 1000 }), [0, 2]);
  t.deepEqual(await count({ urlQps: 60 }), [1, 0]);
  t.deepEqual(await count({ urlQps: 5 }), [2, 0]);
  t.deepEqual(await count({ originErrorPercent: 30 }), [1, 1]);
  t.deepEqual(await count({ originErrorPercent: 50 }), [0, 1]);
});

test.serial('a site is raised by minutes above the rate of all its nodes together, as long as it takes', async (t) => {
  await protect({ cc: { ...OFF, siteQps: 1_000_000 } });
  const nodes = (await api.ok('GET', `/nodes?clusterId=${clusterId}&status=active&pageSize=100`)).total;
  // Three minutes of 100 a second at each node, with a pause between the second and the third.
  const busy = 60 * 100 * nodes;
  await requests([busy, busy, 0, busy]);
  const raised = async (cc: Body) => (await rehearse({ cc })).map(({ count }: Body) => count);
  t.deepEqual(await raised({ siteQps: 99 }), [1]);
  t.deepEqual(await raised({ siteQps: 100 }), [0]);
  t.deepEqual(await raised({ siteQps: 99, escalateAfterSeconds: 120 }), [1]);
  t.deepEqual(await raised({ siteQps: 99, escalateAfterSeconds: 121 }), [0]);
});

test.serial('a shorter ban had ended by now; bans of others are not counted', async (t) => {
  await protect({ cc: { ...OFF, ipBanSeconds: 3600 } });
  const ban = (cidr: string, ago: number, more: Body = {}) =>
    api.sql('ban').insert({
      scope: 'site',
      site_id: siteId,
      cluster_id: clusterId,
      cidr,
      reason: 'cc_ip_rate',
      source: 'auto',
      node_id: nodeId,
      created_at: new Date(Date.now() - ago * MINUTE),
      expires_at: new Date(Date.now() - ago * MINUTE + 3_600_000),
      seq: 1,
      ...more,
    });
  await ban('203.0.113.21', 50);
  await ban('203.0.113.22', 30);
  await ban('203.0.113.23', 5);
  await ban('203.0.113.24', 30, { source: 'manual', reason: 'abuse', node_id: null });
  await ban('203.0.113.25', 30, { site_id: 'another' });
  t.deepEqual(await rehearse({ cc: { ipBanSeconds: 600 } }), [
    { question: 'bans_ended', count: 2, were: 0, lacks: null },
  ]);
});

test.serial('the template is rehearsed for the sites that follow it', async (t) => {
  const template = (change: Body) => api.ok('POST', '/settings/cc-template/rehearse', change);
  await report([event({ topIps: [{ value: '203.0.113.31', count: 400n }] })]);
  t.like((await template({ ipQps: 20 })).answers, [{ question: 'clients_banned', count: null, lacks: 'no_events' }]);
  await protect({ cc: { enabled: true, followTemplate: true } });
  t.like((await template({ ipQps: 20 })).answers, [{ question: 'clients_banned', count: 1, lacks: null }]);
  t.like((await template({ ipQps: 45 })).answers, [{ question: 'clients_banned', count: 0 }]);
  t.deepEqual((await template({})).answers, []);
  await protect({ cc: { enabled: false, followTemplate: false } });
});

test.serial(
  'a lower limit of bans had refused those made beyond it; not sharing had kept automatic ones',
  async (t) => {
    await api.sql('ban').delete();
    const bans = (change: Body) => api.ok('POST', '/settings/bans/rehearse', change);
    const insert = (n: number, ago: number, more: Body = {}) =>
      api.sql('ban').insert({
        scope: 'platform',
        cidr: `203.0.113.${n}`,
        reason: 'abuse',
        source: 'manual',
        created_at: new Date(Date.now() - ago * MINUTE),
        expires_at: new Date(Date.now() + 3_600_000),
        seq: 1,
        ...more,
      });
    // 99 that were there, one that was lifted 20 minutes ago, and five newer ones.
    for (let n = 0; n < 99; n++) await insert(n, 300);
    await insert(99, 300, { lifted_at: new Date(Date.now() - 20 * MINUTE) });
    for (const [n, ago] of [30, 25, 15, 10, 5].entries()) await insert(100 + n, ago);
    t.like((await bans({ maxTotal: 101 })).answers, [{ question: 'bans_refused', count: 3, were: null }]);
    t.like((await bans({ maxTotal: 102 })).answers, [{ count: 2 }]);
    t.like((await bans({ maxTotal: 104 })).answers, [{ count: 0 }]);
    t.deepEqual((await bans({ maxTotal: 10_000 })).answers, []);
    await insert(200, 5, { source: 'auto', reason: 'unknown_host_scan' });
    await insert(201, 5, { source: 'auto', reason: 'unknown_host_scan', distributed: false });
    t.deepEqual((await bans({ shareAutoBans: false })).answers, [
      { question: 'bans_unshared', count: 2, were: 1, lacks: null },
    ]);
    await api.badField(t, '/maxTotal', 'POST', '/settings/bans/rehearse', { maxTotal: 1 });
  },
);
