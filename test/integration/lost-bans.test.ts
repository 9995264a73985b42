// Bans that a restore has lost, as nodes report them: merged, judged and shown.
import test from 'ava';
import { MAX_LOST } from '../../models/bans/lost-ban.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const HOUR_MS = 3_600_000;

let running: TestConsole;
let api: Api;
let siteId: string;
let nodes: ReportingNode[];
let epoch: bigint;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  const clusterId = await api.cluster('lost');
  siteId = (await api.site(clusterId, 'lost.example')).id;
  nodes = await Promise.all([1, 2, 3].map(() => ReportingNode.enroll(running, clusterId)));
  epoch = BigInt((await api.sql('console_state').first('epoch')).epoch);
});
test.after.always(async () => {
  for (const node of nodes ?? []) node.stop();
  await running?.stop();
});
test.beforeEach(() => api.sql.raw('truncate lost_ban, lost_ban_report'));

const gone = (id: string, more: Body = {}) => ({
  id,
  cidr: '203.0.113.7/32',
  source: 1,
  reason: 'scanner',
  createdAtMs: BigInt(Date.now() - HOUR_MS),
  expiresAtMs: BigInt(Date.now() + HOUR_MS),
  ...more,
});
const report = (node: ReportingNode, bans: Body[], more: Body = {}) =>
  node.connection.call('reportLostBans', { epoch, bans, ...more });
const listed = (query = '') => api.ok('GET', `/bans/lost${query}`);

test.serial('reports of nodes are one list, and a report that comes twice counts once', async (t) => {
  const [one, two] = nodes as [ReportingNode, ReportingNode];
  const ofSite = gone('b', { siteId, cidr: '2001:db8::/64', createdAtMs: BigInt(Date.now()) });
  await report(one, [gone('a'), ofSite], { unnamed: 7n });
  await report(one, [gone('a'), ofSite], { unnamed: 7n });
  await report(two, [gone('a'), gone('c', { siteId: 'deleted-since', createdAtMs: 1n })]);
  const { items, total } = await listed();
  t.is(total, 3);
  t.deepEqual(await api.ok('GET', '/bans/lost/status'), { listed: 3, unnamed: 7, nodes: 2 });
  t.deepEqual(
    items.map(({ id, nodes: on, scope, siteName }: Body) => [id, on, scope, siteName]),
    [
      ['b', 1, 'site', 'lost.example'],
      ['a', 2, 'platform', null],
      ['c', 1, 'site', null],
    ],
  );
  t.like(items[1], { cidr: '203.0.113.7/32', reason: 'scanner', source: 'manual', siteId: null });
  t.is((await listed('?page=2&pageSize=2')).items[0].id, 'c');
  const { items: told } = await api.ok('GET', '/audit-logs?action=system.bans_lost');
  t.deepEqual(
    told.map(({ actorType, metadata }: Body) => [actorType, metadata.bans, metadata.unnamed]),
    [
      ['system', 1, 0],
      ['system', 2, 7],
    ],
  );
});

test.serial('what the database knows is not lost: lifted before the backup, or still active', async (t) => {
  const make = (cidr: string) =>
    api.ok('POST', '/bans', { scope: 'platform', cidr, reason: 'abuse', durationSeconds: 3600 });
  const [lifted, active, renewed] = [
    await make('198.51.100.1'),
    await make('198.51.100.2'),
    await make('198.51.100.3'),
  ];
  await api.ok('DELETE', `/bans/${lifted.id}`);
  await report(nodes[0]!, [
    gone(lifted.id, { cidr: '198.51.100.1/32' }),
    gone(active.id, { cidr: '198.51.100.2/32', expiresAtMs: BigInt(Date.parse(active.expiresAt)) }),
    gone(renewed.id, { cidr: '198.51.100.3/32', expiresAtMs: BigInt(Date.now() + 24 * HOUR_MS) }),
  ]);
  t.deepEqual(
    (await listed()).items.map(({ id }: Body) => id),
    [renewed.id],
    'the backup knows nothing of the renewal',
  );
});

test.serial('a lost ban leaves the list when its address is banned again, or when it ends', async (t) => {
  await report(nodes[0]!, [
    gone('a', { cidr: '198.51.100.10/32' }),
    gone('b', { cidr: '198.51.100.11/32', siteId }),
    gone('c', { cidr: '198.51.100.12/32' }),
  ]);
  // On one site is not everywhere.
  const again = { reason: 'abuse', durationSeconds: 3600 };
  await api.ok('POST', '/bans', { ...again, scope: 'site', siteId, cidr: '198.51.100.10' });
  t.is((await listed()).total, 3);
  await api.ok('POST', '/bans', { ...again, scope: 'platform', cidr: '198.51.100.10' });
  await api.ok('POST', '/bans', { ...again, scope: 'site', siteId, cidr: '198.51.100.11' });
  await api.sql('lost_ban').where({ id: 'c' }).update({ expires_at: new Date() });
  t.like(await listed(), { total: 0, items: [] });
});

test.serial('a node of another history is refused, and nothing of what it says is kept', async (t) => {
  const [one] = nodes as [ReportingNode];
  for (const other of [epoch - 1n, epoch + 1n, 0n]) {
    await t.throwsAsync(report(one, [gone('a')], { epoch: other }), { message: /present history/ });
  }
  t.is((await listed()).total, 0);
});

test.serial('what is no ban is left out, and too much is refused', async (t) => {
  const [one, two] = nodes as [ReportingNode, ReportingNode];
  await t.throwsAsync(
    report(
      one,
      Array.from({ length: 1001 }, (_, at) => gone(`b${at}`)),
    ),
    { message: /at most 1000/ },
  );
  await report(one, [
    gone('no cidr', { cidr: 'everything' }),
    gone('ended', { expiresAtMs: BigInt(Date.now() - 1) }),
    gone('<b>'),
    gone('bad-site', { siteId: '../..' }),
    gone('negative', { createdAtMs: -1n }),
    gone('unknown', { reason: 'of a newer release', expiresAtMs: BigInt(Date.now() + 90 * 24 * HOUR_MS) }),
  ]);
  const { items } = await listed();
  t.deepEqual(
    items.map(({ id, reason }: Body) => [id, reason]),
    [['unknown', 'other']],
  );
  t.true(Date.parse(items[0].expiresAt) < Date.now() + 8 * 24 * HOUR_MS);
  // No more than the limit, however many nodes say so.
  await api.sql.raw(
    `insert into lost_ban (id, epoch, cidr, source, reason, created_at, expires_at, nodes, reported_at)
     select 'x' || n, ?, '192.0.2.1', 'auto', 'other', now(), now() + interval '1 hour', 1, now()
       from generate_series(1, ?) n`,
    [String(epoch), MAX_LOST - 3],
  );
  await report(two, [gone('d'), gone('e'), gone('f'), gone('x1', { source: 2 })]);
  t.like(await api.ok('GET', '/bans/lost/status'), { listed: MAX_LOST, unnamed: 1 });
});
