// What a search of request logs costs: 1,000 sites by Zipf, the largest with 300,000 rows a day, 20 million rows. Twelve named
// queries, each on another day or of other values in each round, and once again at once: the first of them is read from disk or
// from the memory of the machine, the second from that of the database. PostgreSQL has 128 MB of its own, as tests give it.
import knexFactory, { type Knex } from 'knex';
import { startTestStores } from '../bin/lib/test-stores.ts';
import { migrate } from '../migrations/run.ts';
import { DAY_MS } from '../models/db/partitions.ts';
import type { LogFilterFields, LogSearch } from '../models/logs/log-reader.ts';
import { PostgresLogReader } from '../models/logs/postgres-log-reader.ts';
import { median, percentile, round2 } from './lib/stats.ts';
import { dayAgo, fillLogs, type LogData, siteName } from './log-rows/fill.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'searches of request logs of one site among 1,000';

const PAGE_AIM_MS = 100;
const TOP_AIM_MS = 1000;
const PAGE = 101;
const HOUR_MS = 3_600_000;

// The largest site has a tenth of the rows.
const FULL: LogData & { rounds: number } = { sites: 1000, rowsPerDay: 2_990_000, days: 7, rounds: 30 };
const QUICK: LogData & { rounds: number } = { sites: 1000, rowsPerDay: 150_000, days: 2, rounds: 10 };

type Query = (reader: PostgresLogReader, round: number, size: LogData) => Promise<unknown>;

/** A day of the largest site, or of another. */
const day = (round: number, { days }: LogData, filter: LogFilterFields = {}, site = 1): LogSearch => {
  const from = dayAgo(1 + (round % days));
  return { siteId: siteName(site), from, to: from + DAY_MS, filter };
};
const all = ({ days }: LogData, filter: LogFilterFields = {}, site = 1): LogSearch => ({
  siteId: siteName(site),
  from: dayAgo(days),
  to: dayAgo(0),
  filter,
});

const QUERIES: Readonly<Record<string, Query>> = {
  'day, newest 100': (reader, round, size) => reader.page(day(round, size), null, PAGE),
  'day, newest 100, three filters': (reader, round, size) =>
    reader.page(day(round, size, { statusClass: 4, method: 'GET', cacheStatus: 'MISS' }), null, PAGE),
  'day, newest 100, three filters that few rows pass': (reader, round, size) =>
    reader.page(day(round, size, { status: 503, method: 'POST', country: 'DE' }), null, PAGE),
  'day, newest 100, three filters of texts that no row passes': (reader, round, size) =>
    reader.page(day(round, size, { ua: `none-${round}`, referer: 'none', path: '/none' }), null, PAGE),
  'day of a middling site, three filters': (reader, round, size) =>
    reader.page(day(round, size, { statusClass: 5, method: 'GET', country: 'US' }, 30 + round), null, PAGE),
  'day, one address': (reader, round, size) =>
    reader.page(day(round, size, { ip: `10.0.${round}.${(round * 37) % 256}` }), null, PAGE),
  'day, refused': (reader, round, size) => reader.page(day(round, size, { blockReason: 'any' }), null, PAGE),
  'all days, one request id': async (reader, round, size) => {
    const [row] = await reader.page(day(round, size), null, 1);
    return reader.page(all(size, { requestId: row!.requestId! }), null, PAGE);
  },
  'day, page 50': async (reader, round, size) => {
    const search = day(round, size);
    const noon = search.from + DAY_MS / 2;
    return reader.page(search, { at: noon, id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }, PAGE);
  },
  'hour, histogram': (reader, round, size) => {
    const { siteId, from, filter } = day(round, size);
    const start = from + (round % 24) * HOUR_MS;
    return reader.histogram({ siteId, from: start, to: start + HOUR_MS, filter }, 30_000);
  },
  'day, histogram': (reader, round, size) => reader.histogram(day(round, size), 1_800_000),
  'day, top 10 URLs': (reader, round, size) => reader.top(day(round, size), 'path', 10),
};
// Where no row passes, all rows of the site are read: that is a figure and no aim.
const PAGE_AIMS = Object.keys(QUERIES).filter((name) => /three filters(?! of texts)/.test(name));
const TOP_AIM = 'day, top 10 URLs';

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const size = quick ? QUICK : FULL;
  const stores = await startTestStores(`${process.pid}-log-query`);
  await migrate(stores.postgres.url);
  const sql = knexFactory({ client: 'pg', connection: stores.postgres.url, pool: { min: 0, max: 2 } });
  try {
    await fillLogs(sql, size, log);
    const reader = new PostgresLogReader(sql);
    const queries: Record<string, { first: ReturnType<typeof figuresOf>; again: ReturnType<typeof figuresOf> }> = {};
    for (const [name, query] of Object.entries(QUERIES)) {
      const first: number[] = [];
      const again: number[] = [];
      for (let round = 0; round < size.rounds; round++) {
        for (const times of [first, again]) {
          const begun = performance.now();
          await query(reader, round, size);
          times.push(performance.now() - begun);
        }
      }
      queries[name] = { first: figuresOf(first), again: figuresOf(again) };
      log(`${name}: ${JSON.stringify(queries[name])}`);
    }
    const bytes = await bytesPerRow(sql, size);
    const p95 = (name: string) => queries[name]!.first.p95Ms;
    return {
      figures: { ...size, rows: size.rowsPerDay * size.days, bytesPerRow: bytes, queries },
      aims: [
        ...PAGE_AIMS.map((name) => ({ aim: `${name}: p95 ≤ ${PAGE_AIM_MS} ms`, reached: p95(name) <= PAGE_AIM_MS })),
        { aim: `${TOP_AIM}: p95 ≤ ${TOP_AIM_MS} ms`, reached: p95(TOP_AIM) <= TOP_AIM_MS },
      ],
    };
  } finally {
    await sql.destroy();
    await stores.stop();
  }
}

function figuresOf(sample: readonly number[]) {
  return {
    p50Ms: round2(median(sample)),
    p95Ms: round2(percentile(sample, 95)),
    maxMs: round2(percentile(sample, 100)),
  };
}

async function bytesPerRow(sql: Knex, { rowsPerDay, days }: LogData): Promise<Record<string, number>> {
  const { rows } = await sql.raw<{ rows: { kind: string; bytes: string }[] }>(
    `select coalesce((select string_agg(a.attname, ', ' order by a.attnum) || case when x.indpred is null then '' else ' of failures' end
           from pg_attribute a where a.attrelid = x.indexrelid), 'table') as kind, sum(pg_relation_size(coalesce(x.indexrelid, t.relid))) as bytes
       from pg_partition_tree('request_log') t
         left join (select indrelid, indexrelid, indpred from pg_index union all select oid, null, null from pg_class) x on x.indrelid = t.relid
      where t.isleaf group by 1`,
  );
  const total = rowsPerDay * days;
  return Object.fromEntries(rows.map(({ kind, bytes }) => [kind, Math.round(Number(bytes) / total)]));
}
