import test from 'ava';
import type { Knex } from 'knex';
import { MAX_AUTOMATIC_BANS, type ReportedBan, recordAutomaticBans } from '../../models/bans/automatic-ban.ts';
import { liftBan, lockActiveBan, writeManualBans } from '../../models/bans/ban.ts';
import { readBanChanges } from '../../models/bans/ban-feed.ts';
import { shareBanGuard } from '../../models/bans/ban-guard.ts';
import { announceReportedBans } from '../../models/bans/ban-numbers.ts';
import { replaceNodeAddresses } from '../../models/nodes/node-address.ts';
import { systemCall } from '../../runtime/call.ts';
import { type Tx, write, writeAlone } from '../../runtime/write.ts';
import { banCreator } from '../../services/bans/create-ban.ts';
import { liftBan as lift } from '../../services/bans/lift-ban.ts';
import { deleteSite } from '../../services/sites/delete-site.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let sql: Knex;
let here: { id: string; clusterId: string };
let there: { id: string; clusterId: string };
let siteId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  sql = api.sql;
  const [one, two] = [await api.cluster('one'), await api.cluster('two')];
  here = { id: await api.node(one, 'here', { addresses: ['198.51.100.1'] }), clusterId: one };
  there = { id: await api.node(two, 'there', { addresses: ['198.51.100.2'] }), clusterId: two };
  siteId = (await api.site(one, 'auto.example')).id;
});
test.after.always('stop', () => running?.stop());
test.beforeEach('start empty', async () => {
  await sql('ban').delete();
  await sql('ip_list').delete();
  await api.ok('PUT', '/settings/bans', { shareAutoBans: true });
});

const MINUTE = 60_000;
const END = { reason: 'abuse', expiresAt: new Date(Date.now() + 60 * MINUTE) };
/** Who waits for a lock. */
const LOCK_WAITS = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
const report = (cidr: string, more: Partial<ReportedBan> = {}): ReportedBan => ({
  siteId,
  cidr,
  reason: more.siteId === null ? 'unknown_host_scan' : 'cc_ip_rate',
  trigger: { metric: 'ip_qps', observed: 120, threshold: 100, windowSeconds: 10 },
  createdAt: new Date(),
  expiresAt: new Date(Date.now() + 10 * MINUTE),
  ...more,
});
const scan = (cidr: string, more: Partial<ReportedBan> = {}) => report(cidr, { siteId: null, ...more });
const record = (node: typeof here, reports: ReportedBan[]) =>
  write(running.running.runtime, systemCall('test'), { pool: 'bans' }, (tx) => recordAutomaticBans(tx, node, reports));
const listed = async (query = ''): Promise<Body[]> => (await api.ok('GET', `/bans?pageSize=100&${query}`)).items;
const lastSeq = async () =>
  BigInt((await sql.raw('select last_value - (not is_called)::int as seq from ban_seq')).rows[0].seq);
/** What nodes of a cluster are told after a number. */
const told = async (node: typeof here, after: bigint) => {
  const batch = await readBanChanges(running.running.runtime.pools.channel, node.clusterId, after);
  return {
    upserts: (batch?.upserts ?? []).map(({ cidr }) => cidr),
    removed: batch?.removedIds.length ?? 0,
    lifted: (batch?.liftedOwn ?? []).map(({ cidr }) => cidr),
  };
};
const NOTHING = { upserts: [], removed: 0, lifted: [] };

test.serial('a shared site ban is listed with node and trigger and goes to its cluster', async (t) => {
  const before = await lastSeq();
  t.is(await record(here, [report('203.0.113.1')]), 1);
  const [ban] = await listed('source=auto');
  t.like(ban, {
    scope: 'site',
    siteId,
    cidr: '203.0.113.1/32',
    reason: 'cc_ip_rate',
    source: 'auto',
    node: { id: here.id, name: 'here' },
    trigger: { metric: 'ip_qps', observed: 120, threshold: 100, windowSeconds: 10 },
    createdBy: null,
    distributed: true,
  });
  t.deepEqual((await told(here, before)).upserts, ['203.0.113.1/32']);
  t.deepEqual(await told(there, before), NOTHING);
});

test.serial('a shared global ban goes to every node', async (t) => {
  const before = await lastSeq();
  await record(here, [scan('2001:db8:5::/64')]);
  for (const node of [here, there]) t.deepEqual((await told(node, before)).upserts, ['2001:db8:5::/64']);
});

test.serial('unshared bans are only seen; the setting holds for bans added afterwards', async (t) => {
  await api.ok('PUT', '/settings/bans', { shareAutoBans: false });
  const before = await lastSeq();
  await record(here, [report('203.0.113.1'), scan('203.0.113.2')]);
  t.deepEqual(
    (await listed()).map(({ distributed }) => distributed),
    [false, false],
  );
  t.deepEqual(await told(here, before), NOTHING);
  await api.ok('PUT', '/settings/bans', { shareAutoBans: true });
  await record(here, [report('203.0.113.1', { expiresAt: new Date(Date.now() + 20 * MINUTE) }), report('203.0.113.3')]);
  const shared = Object.fromEntries((await listed()).map(({ cidr, distributed }) => [cidr, distributed]));
  t.deepEqual(shared, { '203.0.113.1/32': false, '203.0.113.2/32': false, '203.0.113.3/32': true });
});

test.serial('merging: one entry per node, site and address, or per address; a repeated report extends', async (t) => {
  const second = { id: await api.node(here.clusterId, 'second'), clusterId: here.clusterId };
  const later = new Date(Date.now() + 30 * MINUTE);
  await record(here, [report('203.0.113.1'), scan('203.0.113.2')]);
  await record(second, [report('203.0.113.1'), scan('203.0.113.2', { expiresAt: later })]);
  await record(there, [scan('203.0.113.2')]);
  const bans = await listed();
  t.is(bans.filter(({ scope }) => scope === 'site').length, 2);
  const global = bans.filter(({ scope }) => scope === 'platform');
  t.is(global.length, 1);
  t.is(global[0].expiresAt, later.toISOString());
  // Nothing new in a report that ends earlier.
  t.is(await record(here, [report('203.0.113.1', { expiresAt: new Date(Date.now() + MINUTE) })]), 0);
});

test.serial('reports that break a rule are not stored', async (t) => {
  const foreign = (await api.site(there.clusterId, 'foreign.example')).id;
  await api.ok('POST', '/ip-lists', { name: 'trusted', kind: 'allow', entries: ['203.0.113.64/26'] });
  const stored = await record(here, [
    report('203.0.113.1', { siteId: foreign }),
    report('203.0.113.1', { siteId: 'nobody' }),
    report('203.0.113.2', { reason: 'unknown_host_scan' }),
    scan('203.0.113.2', { reason: 'cc_ip_rate' }),
    report('203.0.113.0/24'),
    report('2001:db8::1'),
    report('nonsense'),
    report('127.0.0.1'),
    report('0.0.0.1'),
    scan('127.1.2.3'),
    scan('::/64'),
    report('203.0.113.3', { expiresAt: new Date(Date.now() - 1) }),
    report('198.51.100.1'),
    report('203.0.113.70'),
  ]);
  t.is(stored, 0);
  t.deepEqual(await listed(), []);
  await record(here, [report('203.0.113.4', { expiresAt: new Date(Date.now() + 30 * 86_400_000) })]);
  const [ban] = await listed();
  t.is(Date.parse(ban.expiresAt) - Date.parse(ban.createdAt), 7 * 86_400_000);
});

test.serial(
  "a global ban of another cluster's node or of a trusted proxy is kept but never shared, and can be lifted",
  async (t) => {
    await api.ok('PUT', `/clusters/${there.clusterId}/client-ip`, {
      settings: { mode: 'header', trustedCidrs: ['203.0.113.128/25'], header: 'x-real-ip' },
    });
    const before = await lastSeq();
    await record(here, [scan('198.51.100.2'), scan('203.0.113.200')]);
    const bans = await listed();
    t.deepEqual(
      bans.map(({ distributed }) => distributed),
      [false, false],
    );
    t.deepEqual(await told(there, before), NOTHING);
    await api.ok('DELETE', `/bans/${bans[0].id}`);
    t.is((await listed()).length, 1);
    t.deepEqual((await told(here, before)).lifted, [bans[0].cidr]);
  },
);

test.serial('a global ban of an own node or an allow list is stored as lifted and called back, once', async (t) => {
  await api.ok('POST', '/ip-lists', { name: 'trusted', kind: 'allow', entries: ['203.0.113.64/26'] });
  const before = await lastSeq();
  const reports = [scan('198.51.100.1'), scan('203.0.113.70')];
  t.is(await record(here, reports), 2);
  t.deepEqual(await listed(), []);
  t.deepEqual((await told(here, before)).lifted.sort(), ['198.51.100.1/32', '203.0.113.70/32']);
  t.deepEqual(await told(there, before), NOTHING);
  t.is(await record(here, reports), 0);
});

test.serial(
  'a manual global ban takes over the automatic one: a new ban for every node, counted and audited',
  async (t) => {
    for (const share of [true, false]) {
      await sql('ban').delete();
      await api.ok('PUT', '/settings/bans', { shareAutoBans: share });
      await record(here, [scan('2001:db8:9::/64')]);
      const [automatic] = await listed();
      const before = await lastSeq();
      const ban = await api.ok('POST', '/bans', {
        scope: 'platform',
        cidr: '2001:db8:9::1/64',
        reason: 'scanner',
        durationSeconds: 600,
      });
      t.not(ban.id, automatic.id);
      t.deepEqual(await listed(), [ban]);
      t.deepEqual(
        (await api.audit(ban.id)).map(({ action }) => action),
        ['ban.create'],
      );
      for (const node of [here, there]) {
        t.deepEqual(await told(node, before), { upserts: [ban.cidr], removed: 1, lifted: [ban.cidr] });
      }
      // While it is active, no automatic one is made beside it.
      t.is(await record(there, [scan('2001:db8:9::/64')]), 0);
      await api.ok('DELETE', `/bans/${ban.id}`);
      t.is(await record(there, [scan('2001:db8:9::/64')]), 1);
    }
  },
);

test.serial('a report made before an unban brings nothing back; a ban made after it is a new one', async (t) => {
  for (const make of [report, scan]) {
    await sql('ban').delete();
    const early = make('203.0.113.30', { createdAt: new Date(Date.now() - 5000) });
    await record(here, [early]);
    const [ban] = await listed();
    await api.ok('DELETE', `/bans/${ban.id}`);
    t.is(await record(here, [early, { ...early, expiresAt: new Date(Date.now() + 20 * MINUTE) }]), 0);
    t.deepEqual(await listed(), []);
    t.is(await record(here, [make('203.0.113.30', { createdAt: new Date(Date.now() + 1000) })]), 1);
    t.not((await listed())[0].id, ban.id);
  }
});

test.serial('a global unban reaches every node, as far as its cluster can have banned', async (t) => {
  await api.ok('PUT', `/clusters/${there.clusterId}/unknown-hosts`, { scan: { enabled: true, banSeconds: 7200 } });
  await api.ok('PUT', `/clusters/${there.clusterId}/unknown-hosts`, { scan: { enabled: false } });
  for (const share of [true, false]) {
    await sql('ban').delete();
    await api.ok('PUT', '/settings/bans', { shareAutoBans: share });
    await record(here, [scan('203.0.113.31')]);
    const [ban] = await listed();
    const before = await lastSeq();
    await api.ok('DELETE', `/bans/${ban.id}`);
    const { lifted_at: lifted } = await sql('ban').where({ id: ban.id }).first('lifted_at');
    for (const [node, until] of [
      [here, Date.parse(ban.expiresAt)],
      [there, lifted.getTime() + 7_200_000],
    ] as const) {
      const batch = await readBanChanges(running.running.runtime.pools.channel, node.clusterId, before);
      t.deepEqual(
        batch!.liftedOwn.map(({ siteId: site, cidr, expiresNoLaterThanMs }) => [
          site,
          cidr,
          Number(expiresNoLaterThanMs),
        ]),
        [['', '203.0.113.31/32', until]],
      );
    }
  }
});

test.serial('a change of sharing affects the bans made afterwards, also when an earlier one is extended', async (t) => {
  await api.ok('PUT', '/settings/bans', { shareAutoBans: false });
  await record(here, [report('203.0.113.32')]);
  await api.ok('PUT', '/settings/bans', { shareAutoBans: true });
  await record(here, [
    report('203.0.113.32', { expiresAt: new Date(Date.now() + 20 * MINUTE) }),
    report('203.0.113.33'),
  ]);
  t.deepEqual((await listed()).map(({ cidr, distributed }) => [cidr, distributed]).sort(), [
    ['203.0.113.32/32', false],
    ['203.0.113.33/32', true],
  ]);
});

test.serial('bans of several nodes at the same moment stay one an address on the platform', async (t) => {
  const nodes = [here, there];
  await Promise.all(
    Array.from({ length: 10 }, (_, index) =>
      record(nodes[index % 2]!, [scan('203.0.113.34', { expiresAt: new Date(Date.now() + (index + 1) * MINUTE) })]),
    ),
  );
  const bans = await listed();
  t.is(bans.length, 1);
  t.true(Date.parse(bans[0].expiresAt) > Date.now() + 9 * MINUTE);
});

test.serial('the fixed limit of global bans is beside that of a cluster', async (t) => {
  await sql.raw(
    `insert into ban (scope, cidr, reason, source, node_id, expires_at, seq)
     select 'platform', set_masklen('203.1.0.0'::inet + n, 32), 'unknown_host_scan', 'auto', ?, now() + interval '1 minute',
       nextval('ban_seq') from generate_series(1, ?) n`,
    [here.id, MAX_AUTOMATIC_BANS],
  );
  t.is(await record(here, [scan('203.0.113.1'), report('203.0.113.1')]), 1);
  t.is((await listed('scope=site')).length, 1);
});

test.serial('a site ban takes nothing over', async (t) => {
  await record(here, [scan('203.0.113.9')]);
  await api.ok('POST', '/bans', { scope: 'site', siteId, cidr: '203.0.113.9', reason: 'other', durationSeconds: 60 });
  t.is((await listed()).length, 2);
});

test.serial('an expired automatic ban makes way for a new one', async (t) => {
  await record(here, [report('203.0.113.1')]);
  const [first] = await listed();
  await sql('ban')
    .where({ id: first.id })
    .update({ expires_at: new Date(Date.now() - 1000) });
  t.is(await record(here, [report('203.0.113.1')]), 1);
  t.not((await listed())[0].id, first.id);
});

test.serial('beyond the fixed limit new bans are not stored, known ones are still extended', async (t) => {
  await sql.raw(
    `insert into ban (scope, site_id, cluster_id, cidr, reason, source, node_id, expires_at, seq)
     select 'site', ?, ?, set_masklen('203.1.0.0'::inet + n, 32), 'cc_ip_rate', 'auto', ?, now() + interval '1 minute',
       nextval('ban_seq') from generate_series(1, ?) n`,
    [siteId, here.clusterId, here.id, MAX_AUTOMATIC_BANS - 1],
  );
  const reports = [report('203.0.113.1'), report('203.0.113.2'), report('203.1.0.1')];
  t.is(await record(here, reports), 2);
  const [{ n }] = (await sql.raw(`select count(*)::int as n from ban where source = 'auto'`)).rows;
  t.is(n, MAX_AUTOMATIC_BANS);
});

test.serial('whoever lifts a ban that a node reports again waits for the report', async (t) => {
  const { runtime } = running.running;
  const doomed = (await api.site(here.clusterId, 'doomed.example')).id;
  for (const [path, of] of [
    ['/bans', siteId],
    ['/sites', doomed],
  ] as const) {
    await record(here, [report('203.0.113.77', { siteId: of })]);
    const [ban] = await listed(`siteId=${of}`);
    let lifting: Promise<Body> | undefined;
    // Not sent again when it is answered as busy, which is what this is about.
    const once = (target: string) =>
      running.client.request('DELETE', `/api/v1${target}`, undefined, { 'x-api-key': running.client.accessKey });
    await write(runtime, systemCall('test'), { pool: 'bans' }, async (tx) => {
      const again = report('203.0.113.77', { siteId: of, expiresAt: new Date(Date.now() + 20 * MINUTE) });
      t.is(await recordAutomaticBans(tx, here, [again]), 1);
      lifting = once(`${path}/${path === '/bans' ? ban.id : of}`);
      await eventually(async () => (await sql.raw(LOCK_WAITS)).rows.length > 0);
    });
    t.is((await lifting!).status, 200);
    t.deepEqual(await listed(`siteId=${of}`), []);
  }
});

test.serial('a report that meets an unban of what it was made before brings nothing back', async (t) => {
  const early = report('203.0.113.78', { expiresAt: new Date(Date.now() + 20 * MINUTE) });
  await record(here, [report('203.0.113.78')]);
  const [ban] = await listed();
  let reporting: Promise<number> | undefined;
  await writeAlone(running.running.runtime.pools.bans, systemCall('test'), async (tx) => {
    t.truthy(await lockActiveBan(tx.sql, ban!.id, tx.now));
    reporting = record(here, [early]);
    await eventually(async () => (await sql.raw(LOCK_WAITS)).rows.length > 0);
    await liftBan(tx, ban!.id);
  });
  t.is(await reporting!, 0);
  t.deepEqual(await listed(), []);
});

test.serial('a report that has to wait holds up no ban of others', async (t) => {
  const { runtime } = running.running;
  await record(here, [report('203.0.113.79')]);
  const [ban] = await listed();
  const again = report('203.0.113.79', { expiresAt: new Date(Date.now() + 20 * MINUTE) });
  let reporting: Promise<number> | undefined;
  await sql.transaction(async (trx) => {
    await trx.raw('select from ban where id = ? for update', [ban!.id]);
    reporting = writeAlone(runtime.pools.api, systemCall('test'), (tx) => recordAutomaticBans(tx, here, [again]));
    await eventually(async () => (await sql.raw(LOCK_WAITS)).rows.length > 0);
    const body = { scope: 'platform', cidr: '203.0.113.80', reason: 'abuse', durationSeconds: 600 };
    t.is((await api.ok('POST', '/bans', body)).cidr, '203.0.113.80/32');
    t.is((await sql.raw(LOCK_WAITS)).rows.length, 1);
  });
  t.is(await reporting!, 1);
});

test.serial('a manual ban and a report of the same address leave one ban, whoever comes first', async (t) => {
  const { runtime } = running.running;
  const cidr = '203.0.113.81/32';
  const call = systemCall('test');
  // Neither ends by the time limit of a change: how long the statements take says nothing about the rule.
  const manual = await runtime.pools.bans.transaction();
  const tx: Tx = { sql: manual, call, now: new Date(), wake: false };
  t.teardown(async () => {
    if (!manual.isCompleted()) await manual.rollback();
  });
  // A report that has looked and not yet announced: the manual ban does not see it.
  await writeAlone(runtime.pools.api, call, async (report) => {
    await report.sql.raw(
      `insert into ban (id, scope, cidr, reason, source, node_id, expires_at, seq)
       values ('unseen', 'platform', ?, 'unknown_host_scan', 'auto', ?, now() + interval '1 h', 0)`,
      [cidr, here.id],
    );
    await writeManualBans(manual, tx.now, [
      [tx, { ...END, id: 'seen', renews: false, siteId: null, clusterId: null, cidr }],
    ]);
    await manual.commit();
    await announceReportedBans(report, ['unseen'], []);
  });
  t.deepEqual(
    (await listed()).map(({ id }) => id),
    ['seen'],
  );
  const unseen = await sql('ban').where({ id: 'unseen' }).first();
  t.truthy(await sql('ban_change').where({ ban_id: 'unseen', seq: unseen.seq }).first(), 'its node is told');
});

test.serial('a manual ban passes over one that a report holds and leaves as it is: still one ban', async (t) => {
  const { runtime } = running.running;
  const cidr = '203.0.113.82/32';
  const known = scan(cidr);
  const make = async (tx: Tx) => {
    await writeManualBans(tx.sql, tx.now, [
      [tx, { ...END, id: 'manual', renews: false, siteId: null, clusterId: null, cidr }],
    ]);
  };
  // The manual ban has looked before there was one, and so waits for none that is locked.
  await writeAlone(runtime.pools.bans, systemCall('test'), async (manual) => {
    await record(here, [known]);
    let making: Promise<void> | undefined;
    const reported = await writeAlone(runtime.pools.api, systemCall('test'), async (tx) => {
      const stored = await recordAutomaticBans(tx, there, [known]);
      making = make(manual);
      const done = making.then(() => true);
      await eventually(
        async () => (await Promise.race([done, undefined])) || (await sql.raw(LOCK_WAITS)).rows.length > 0,
      );
      return stored;
    });
    t.is(reported, 0, 'nothing new');
    await making;
  });
  t.deepEqual(
    (await listed()).map(({ id }) => id),
    ['manual'],
  );
});

test.serial('a node whose address changes waits for no ban', async (t) => {
  await writeAlone(running.running.runtime.pools.bans, systemCall('test'), async (tx) => {
    await shareBanGuard(tx.sql);
    await replaceNodeAddresses(sql, here.id, [{ address: '198.51.100.3', source: 'reported' }]);
  });
  t.deepEqual(await sql('node_address').where({ node_id: here.id }).pluck('address'), ['198.51.100.3']);
  await replaceNodeAddresses(sql, here.id, [{ address: '198.51.100.1', source: 'reported' }]);
});

test.serial('creating, lifting, reporting, deleting sites and moving nodes at once never deadlock', async (t) => {
  const { runtime } = running.running;
  const create = banCreator(runtime);
  const addresses = Array.from({ length: 12 }, (_, index) => `203.0.113.${100 + index}`);
  const later = (minutes: number) => ({ expiresAt: new Date(Date.now() + minutes * MINUTE) });
  const codes: string[] = [];
  // Busy is an answer; a deadlock is a fault even where it is hidden behind one.
  const tried = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => null,
      (thrown) => thrown,
    );
    if (error === null) return;
    const { code, nativeError } = (error.cause ?? {}) as { code?: string; nativeError?: { code?: string } };
    codes.push(`${error.type ?? error.message} ${nativeError?.code ?? code ?? ''}`.trim());
  };
  for (let round = 1; round <= 6; round++) {
    const doomed = (await api.site(here.clusterId, `doomed${round}.example`)).id;
    const own = (cidr: string) => report(cidr, { siteId: doomed, ...later(round) });
    const listedIds = (await listed()).map(({ id }) => id);
    const manual = (cidr: string, siteId?: string) =>
      create(
        { scope: siteId ? 'site' : 'platform', cidr, reason: 'abuse', durationSeconds: 600, ...(siteId && { siteId }) },
        systemCall('test'),
      );
    await Promise.all(
      [
        ...addresses.map((cidr) => manual(cidr)),
        ...addresses.map((cidr) => manual(cidr, doomed)),
        ...[here, there, here, there].map((node) =>
          record(
            node,
            addresses.map((cidr) => scan(cidr, later(round))),
          ),
        ),
        record(here, addresses.toReversed().map(own)),
        record(here, addresses.map(own)),
        ...listedIds.map((id) => lift(runtime, { id }, systemCall('test'))),
        deleteSite(runtime, { id: doomed }, systemCall('test')),
        ...[here, there].map(({ id }, at) =>
          replaceNodeAddresses(sql, id, [{ address: `198.51.101.${2 * round + at}`, source: 'reported' }]),
        ),
      ].map(tried),
    );
  }
  const expected = /^(BAN_NOT_FOUND|SITE_NOT_FOUND|SERVICE_UNAVAILABLE( 55P03| 25P04)?)$/;
  t.deepEqual(
    [...new Set(codes)].filter((code) => !expected.test(code)),
    [],
  );
  const { rows } = await sql.raw(
    `select cidr::text from ban where scope = 'platform' and lifted_at is null and expires_at > now()
      group by cidr having count(*) > 1`,
  );
  t.deepEqual(rows, [], 'one ban an address');
  const { rows: untold } = await sql.raw(
    `select b.id from ban b where (b.distributed or b.lifted_at is not null) and b.seq is distinct from (
       select max(c.seq) from ban_change c where c.ban_id = b.id)`,
  );
  t.deepEqual(untold, [], 'the feed says the last of each');
});
