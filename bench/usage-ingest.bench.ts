// Usage from what nodes send to what an operator reads. A minute of 1,000 nodes with 1,000 active sites each, as it comes:
// processor time of the console's part and of PostgreSQL. A day of backlog of 100 nodes with 50 active sites. A page of
// 5,000 records of many. The stores run without fsync, as in tests; messages are decoded, TLS is not in it.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import knexFactory, { type Knex } from 'knex';
import { LATENCY_BOUNDS_MS } from '../contract/latency-buckets.ts';
import { createCluster } from '../models/clusters/create-cluster.ts';
import { makeUsagePartitions } from '../models/usage/usage-partitions.ts';
import { ReportStatsRequestSchema } from '../proto/gen/svc/node/v1/node_pb.js';
import { systemCall } from '../runtime/call.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { write } from '../runtime/write.ts';
import { StatsIngest } from '../services/node-channel/stats-ingest.ts';
import { createSite } from '../services/sites/create-site.ts';
import { listUsage } from '../services/usage/list.ts';
import { rollUpUsage } from '../services/usage/roll-up.ts';
import { startBenchRuntime } from './lib/bench-runtime.ts';
import { copySites } from './lib/copy-sites.ts';
import { familyCpuSeconds } from './lib/machine.ts';
import { percentile, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'counts of nodes: taken, a day of backlog drained, and usage read';

const CPU_AIM = 0.3;
const BACKLOG_AIM_S = 600;
const PAGE_AIM_MS = 100;
const PAGE = 5000;
const BATCH_ROWS = 1000;
const WINDOW_S = 300;
const RECORD_SITES = 1000;
/** Records to read from, where another number than that of the aim is wanted. */
const RECORDS = Number(process.env.SVC_BENCH_USAGE_RECORDS ?? 100_000_000);

interface Size {
  nodes: number;
  sites: number;
  seconds: number;
  backlogNodes: number;
  backlogMinutes: number;
  records: number;
  rounds: number;
}
const FULL: Size = {
  nodes: 1000,
  sites: 1000,
  seconds: 60,
  backlogNodes: 100,
  backlogMinutes: 1440,
  records: RECORDS,
  rounds: 100,
};
const QUICK: Size = {
  nodes: 100,
  sites: 200,
  seconds: 4,
  backlogNodes: 4,
  backlogMinutes: 100,
  records: 50_000,
  rounds: 10,
};
const BACKLOG_SITES = 50;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const size = quick ? QUICK : FULL;
  const { stores, runtime, stop } = await startBenchRuntime('usage-ingest');
  try {
    const { clusterId, siteIds } = await fillSites(runtime, size.sites);
    const postmaster = Number(readFileSync(stores.folder.file('postgres/postmaster.pid'), 'utf8').split('\n')[0]);
    const cpu = () => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6 + familyCpuSeconds(postmaster);
    const ingest = new StatsIngest(runtime);
    log(`${siteIds.length} sites are there`);
    const live = await takeMinute(runtime, ingest, { clusterId, siteIds }, size, cpu);
    log(`a minute is taken: ${JSON.stringify(live)}`);
    const backlog = await drainBacklog(runtime, ingest, { clusterId, siteIds }, size);
    log(`the backlog is drained: ${JSON.stringify(backlog)}`);
    // Without the time limit of the console's own statements.
    const filler = knexFactory({ client: 'pg', connection: stores.postgres.url, pool: { min: 0, max: 1 } });
    await fillRecords(filler, size.records).finally(() => filler.destroy());
    log(`${size.records} records are there`);
    const pages = await readPages(runtime, size);
    return {
      figures: { ...size, live, backlog, pageMs: summary(pages) },
      aims: [
        { aim: `console and PostgreSQL ≤ ${CPU_AIM} of a core`, reached: live.ofCore <= CPU_AIM },
        { aim: `backlog drained in ≤ ${BACKLOG_AIM_S} s`, reached: backlog.seconds <= BACKLOG_AIM_S },
        { aim: `a page of ${PAGE} p95 ≤ ${PAGE_AIM_MS} ms`, reached: percentile(pages, 95) <= PAGE_AIM_MS },
      ],
    };
  } finally {
    await stop();
  }
}

interface Place {
  clusterId: string;
  siteIds: readonly string[];
}

async function fillSites(runtime: Runtime, sites: number): Promise<Place> {
  const call = systemCall('bench');
  const clusterId = await write(runtime, call, {}, (tx) => createCluster(tx, runtime.sealer, { name: 'usage' }));
  const input = { clusterId, name: 'first', domains: ['first.example'], origins: [{ address: 'origin.example.net' }] };
  const { site } = await createSite(runtime, input as Parameters<typeof createSite>[1], call);
  return { clusterId, siteIds: [site.id, ...(await copySites(runtime, clusterId, site.id, sites - 1))] };
}

/** Counts of sites and minutes as a busy node has them, encoded. */
function encoded(siteIds: readonly string[], minutes: readonly number[]): Uint8Array {
  const latency = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, bucket) => BigInt(bucket % 7));
  return toBinary(
    ReportStatsRequestSchema,
    create(ReportStatsRequestSchema, {
      minutes: minutes.flatMap((minute) =>
        siteIds.map((siteId, index) => ({
          siteId,
          minute: BigInt(minute),
          requests: 60n,
          bytesSent: 1_000_000n + BigInt(index),
          bytesReceived: 30_000n,
          statuses: [
            { code: 200, count: 50n },
            { code: 304, count: 8n },
            { code: 404, count: 2n },
          ],
          latency,
        })),
      ),
    }),
  );
}

/** The head of a batch before its counts: one message, as parts of one add up. */
function batchOf(sequence: number, counts: Uint8Array): Uint8Array {
  const head = create(ReportStatsRequestSchema, { sequence: BigInt(sequence), firstHeld: BigInt(sequence) });
  return Buffer.concat([toBinary(ReportStatsRequestSchema, head), counts]);
}

async function send(ingest: StatsIngest, nodeId: string, clusterId: string, bytes: Uint8Array): Promise<void> {
  await ingest.report({ nodeId, clusterId }, bytes);
}

/** Nodes report at even times of a minute; then closed windows are recomputed, once for the share of a minute. */
async function takeMinute(
  runtime: Runtime,
  ingest: StatsIngest,
  { clusterId, siteIds }: Place,
  { nodes, seconds }: Size,
  cpu: () => number,
): Promise<{ nodes: number; siteMinutes: number; ofCore: number; rollUpMs: number }> {
  const minute = Math.floor(Date.now() / 1000 / WINDOW_S) * WINDOW_S - WINDOW_S;
  const bytes = batchOf(1, encoded(siteIds, [minute]));
  const senders = Math.round((nodes * seconds) / 60);
  const before = cpu();
  const started = performance.now();
  const sent: Promise<void>[] = [];
  for (let node = 0; node < senders; node++) {
    const wait = started + (node * seconds * 1000) / senders - performance.now();
    if (wait > 0) await sleep(wait);
    sent.push(send(ingest, `live-${node}`, clusterId, bytes));
  }
  await Promise.all(sent);
  const elapsed = (performance.now() - started) / 1000;
  const taken = (cpu() - before) / elapsed;
  const beforeRollUp = cpu();
  const rolling = performance.now();
  await rollUpUsage(runtime);
  const rollUpMs = performance.now() - rolling;
  const ofCore = taken + (cpu() - beforeRollUp) / 60;
  return {
    nodes: senders,
    siteMinutes: senders * siteIds.length,
    ofCore: round(ofCore),
    rollUpMs: Math.round(rollUpMs),
  };
}

/** All nodes come back at once, each with one batch under way; roll-ups go on each minute and once at the end. */
async function drainBacklog(
  runtime: Runtime,
  ingest: StatsIngest,
  { clusterId, siteIds }: Place,
  { backlogNodes, backlogMinutes }: Size,
): Promise<{ siteMinutes: number; storedSeconds: number; seconds: number }> {
  const sites = siteIds.slice(0, BACKLOG_SITES);
  const perBatch = BATCH_ROWS / BACKLOG_SITES;
  const until = Math.floor(Date.now() / 60_000) * 60 - 600;
  const batches = Array.from({ length: Math.ceil(backlogMinutes / perBatch) }, (_, index) => {
    const minutes = Array.from({ length: perBatch }, (__, minute) => until - 60 * (index * perBatch + minute));
    return batchOf(index + 1, encoded(sites, minutes));
  });
  const started = performance.now();
  const ended = new AbortController();
  const rolling = rollUpEachMinute(runtime, ended.signal);
  await Promise.all(
    Array.from({ length: backlogNodes }, async (_, node) => {
      for (const bytes of batches) await send(ingest, `backlog-${node}`, clusterId, bytes);
    }),
  );
  const storedSeconds = (performance.now() - started) / 1000;
  ended.abort();
  await rolling;
  await rollUpUsage(runtime);
  const seconds = (performance.now() - started) / 1000;
  const siteMinutes = backlogNodes * batches.length * BATCH_ROWS;
  return { siteMinutes, storedSeconds: round(storedSeconds), seconds: round(seconds) };
}

async function rollUpEachMinute(runtime: Runtime, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(60_000, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await rollUpUsage(runtime);
  }
}

/** Records of the last weeks of so many sites, as the roll-up would have made them. */
async function fillRecords(sql: Knex, records: number): Promise<void> {
  const windows = Math.ceil(records / RECORD_SITES);
  const now = Date.now();
  // Weeks are made without a hole from the oldest: that of the first window.
  for (let at = now - windows * WINDOW_S * 1000; at < now; at += 7 * 86_400_000) {
    await makeUsagePartitions(sql, new Date(at));
  }
  // Made of a hundred million rows in order, indexes take minutes; row by row hours.
  const indexes = await dropRecordIndexes(sql);
  await sql.raw(
    `insert into usage_record (window_start, site_id, requests, bytes_sent, bytes_received, seq, updated_at)
     select date_bin('5 minutes', now(), '2000-01-01 00:00:00+00') - w * interval '5 minutes',
         lpad(s::text, 36, '0'), 300, 5000000, 150000, nextval('usage_seq'), now()
       from generate_series(?::int, 1, -1) w, generate_series(1, ?::int) s`,
    [windows, RECORD_SITES],
  );
  await sql.raw(`set maintenance_work_mem = '1GB'`);
  for (const index of indexes) await sql.raw(index);
  await sql.raw('vacuum analyze usage_record');
}

/** Answers how to make them again. */
async function dropRecordIndexes(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { drop: string; make: string }[] }>(
    `select case when c.oid is null then format('drop index %s', i.indexrelid::regclass)
          else format('alter table usage_record drop constraint %I', c.conname) end as drop,
        case when c.oid is null then pg_get_indexdef(i.indexrelid)
          else format('alter table usage_record add constraint %I %s', c.conname, pg_get_constraintdef(c.oid)) end as make
       from pg_index i left join pg_constraint c on c.conindid = i.indexrelid
      where i.indrelid = 'usage_record'::regclass`,
  );
  for (const { drop } of rows) await sql.raw(drop);
  // Indexes of a partitioned table are made on the parent alone by their definition.
  return rows.map(({ make }) => make.replace(' ON ONLY ', ' ON '));
}

/** Pages of places far apart. */
async function readPages(runtime: Runtime, { records, rounds }: Size): Promise<number[]> {
  const windows = Math.ceil(records / RECORD_SITES);
  const last = Math.floor(Date.now() / 1000 / WINDOW_S) * WINDOW_S;
  const iso = (seconds: number) => new Date(seconds * 1000).toISOString();
  const to = iso(last);
  const times: number[] = [];
  for (let turn = -3; turn < rounds; turn++) {
    const from = iso(last - WINDOW_S * Math.ceil(windows * (1 - Math.max(turn, 0) / rounds)));
    const started = performance.now();
    const page = await listUsage(runtime, { from, to, limit: PAGE });
    const text = JSON.stringify(page);
    if (turn >= 0) times.push(performance.now() - started);
    if (text.length === 0 || page.items.length === 0) throw new Error('the page is empty');
  }
  return times;
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
