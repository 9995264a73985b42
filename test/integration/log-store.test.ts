// Request logs in PostgreSQL: the suite of all stores, and how long, and how much of, rows are kept.
import test from 'ava';
import pg from 'pg';
import { DAY_MS, dayOf, partitionsOf } from '../../models/db/partitions.ts';
import { holdBound, sweepGoneSites, sweepLogs } from '../../models/logs/log-days.ts';
import { PostgresLogReader } from '../../models/logs/postgres-log-reader.ts';
import { PostgresLogWriter } from '../../models/logs/postgres-log-writer.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { LOG_STORE_SUITE, logRow } from '../helpers/log-store-suite.ts';
import { Api } from '../helpers/resources.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let pool: pg.Pool;
let made = 0;

test.before(async () => {
  running = await startTestConsole({ env: withoutJobs() });
  api = new Api(running);
  clusterId = await api.cluster('stored');
  pool = new pg.Pool({ connectionString: running.running.runtime.env.databaseUrl, max: 1 });
});
test.after.always(async () => {
  await pool?.end();
  await running?.stop();
});

const sql = () => running.running.runtime.pools.api;
const newSite = async (): Promise<string> => (await api.site(clusterId, `stored-${made++}.example`)).id;
const batch = (rows: ReturnType<typeof logRow>[]) => ({
  nodeId: 'n',
  clusterId,
  rows,
  aside: [],
  ring: 1n,
  losses: [],
});

for (const [title, property] of Object.entries(LOG_STORE_SUITE)) {
  test.serial(title, async (t) => {
    const siteIds = [await newSite(), await newSite()] as const;
    const store = { writer: new PostgresLogWriter(pool), reader: new PostgresLogReader(sql()), clusterId, siteIds };
    // Not around midnight: a row of the day before has another partition, which is as good.
    await property(t, store, Date.now() - 2000);
  });
}

test.serial('rows beyond the days that are kept are not stored, and their days are dropped', async (t) => {
  const siteId = await newSite();
  const now = Date.now();
  await api.ok('PUT', '/settings/logs', { retentionDays: 3 });
  const at = [0, 1, 2, 3].map((days) => now - days * DAY_MS);
  const writer = new PostgresLogWriter(pool);
  t.like(await writer.append(batch(at.map((time) => logRow(siteId, time)))), { stored: 3, tooOld: 1 });
  await api.ok('PUT', '/settings/logs', { retentionDays: 2 });
  const { days } = await sweepLogs(sql(), new Date(now));
  t.is(days.length, 1);
  const kept = await partitionsOf(sql(), { table: 'request_log', days: 1 });
  t.is(kept[0]!.start, dayOf(now) - DAY_MS);
  // The writer knew the day that is gone; its rows are too old now.
  await t.notThrowsAsync(new PostgresLogWriter(pool).append(batch([logRow(siteId, at[2]!), logRow(siteId, now)])));
  await api.ok('PUT', '/settings/logs', { retentionDays: 7 });
});

test.serial('beyond the bound on disk the oldest days go first, then the oldest hours of today', async (t) => {
  const siteId = await newSite();
  const today = dayOf(Date.now());
  const rows = [today - DAY_MS + 1, today + 1, today + 3_600_001].map((at) => logRow(siteId, at));
  await new PostgresLogWriter(pool).append(batch(rows));
  const count = async () => Number((await sql()('request_log').where('site_id', siteId).count())[0]!.count);
  t.is(await count(), 3);
  const { days } = await holdBound(sql(), today, 2 ** 40);
  t.deepEqual(days, []);
  const held = await holdBound(sql(), today, 0);
  t.true(held.days.length >= 1 && held.rows >= 2);
  t.is(await count(), 0);
});

test.serial('rows of a deleted site are hidden at once, and swept', async (t) => {
  const siteId = await newSite();
  await new PostgresLogWriter(pool).append(batch([logRow(siteId, Date.now())]));
  const range = {
    from: new Date(Date.now() - 60_000).toISOString(),
    to: new Date(Date.now() + 60_000).toISOString(),
  };
  const path = `/sites/${siteId}/logs?${new URLSearchParams(range)}`;
  t.is((await api.ok('GET', path)).entries.length, 1);
  await api.ok('DELETE', `/sites/${siteId}`);
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', path);
  t.true((await sweepGoneSites(sql())) >= 1);
  t.is(Number((await sql()('request_log').where('site_id', siteId).count())[0]!.count), 0);
});
