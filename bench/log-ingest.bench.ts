// Rows of request logs from nodes to the disk: 10 nodes report 10,000 rows a second together, as agents do, to a console of
// one process. Processor time of the console a row is what it takes beyond the same time without rows; bans go to 100 other
// nodes in both. Beside it bare COPY of the same rows, encoded before, into a table with the same indexes. The stores run
// without fsync.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { create, toBinary } from '@bufbuild/protobuf';
import pg from 'pg';
import { copyIn } from '../models/db/copy-in.ts';
import { LOG_COLUMNS, logFields } from '../models/logs/postgres-log-writer.ts';
import { ReportLogsRequestSchema } from '../proto/gen/svc/node/v1/logs_pb.js';
import { readLogReport } from '../services/node-channel/log-report.ts';
import { enrollNodes } from './fleet/enroll-nodes.ts';
import { ALL_FEATURES } from './fleet/fleet.ts';
import { Bans } from './lib/ban-times.ts';
import { type ConsoleStack, startConsoleStack } from './lib/console-stack.ts';
import { copySites } from './lib/copy-sites.ts';
import { type FleetProcess, startFleetProcess } from './lib/fleet-process.ts';
import { cpuSeconds, familyCpuSeconds } from './lib/machine.ts';
import { withRuntime } from './lib/stack.ts';
import { median, percentile, round2 } from './lib/stats.ts';
import { rowMaker } from './log-ingest/rows.ts';
import type { SenderCount, SenderQuestion, Senders } from './log-ingest/sender.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'rows of request logs taken, and bans meanwhile';

const CPU_AIM = 40;
const RATIO_AIM = 1.5;
const SITES = 200;
const SENDERS = 10;
const SETTLE_MS = 2_000;
const COPY_ROWS = 1_000;

interface Size {
  nodes: number;
  rowsPerSecond: number;
  rounds: number;
  bans: number;
  copies: number;
}
const FULL: Size = { nodes: 100, rowsPerSecond: 10_000, rounds: 6, bans: 40, copies: 100 };
const QUICK: Size = { nodes: 20, rowsPerSecond: 10_000, rounds: 2, bans: 10, copies: 20 };

/** What a second of a kind of rounds took. */
interface Load {
  seconds: number;
  console: number;
  postgres: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const size = quick ? QUICK : FULL;
  const stack = await startConsoleStack('log-ingest');
  let fleet: FleetProcess | null = null;
  let worker: Worker | null = null;
  try {
    const { clusterId, nodeApiUrl } = stack.facts;
    const siteIds = await makeSites(stack);
    const newToken = () =>
      stack.client.api<{ token: string; caSha256: string }>('POST', '/enrollment-tokens', { clusterId });
    const identities = await enrollNodes(SENDERS, nodeApiUrl, newToken, ALL_FEATURES, 4);
    const workerData: Senders = { serverUrl: nodeApiUrl, identities, siteIds, rowsPerSecond: size.rowsPerSecond };
    worker = new Worker(new URL('log-ingest/sender.ts', import.meta.url), { workerData });
    await once(worker, 'online');
    fleet = await startFleetProcess(stack, size.nodes);
    log(`${size.nodes} nodes follow bans, ${SENDERS} others log`);
    const bans = new Bans(stack, fleet);
    await bans.measure(5);
    const times = { without: [] as number[], with: [] as number[] };
    const loads = { without: [] as Load[], with: [] as Load[] };
    let rows = 0;
    for (let round = 0; round < size.rounds; round++) {
      for (const kind of round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        tell(worker, { type: 'send', on: kind === 'with' });
        await sleep(SETTLE_MS);
        const from = await counted(worker);
        const load = loadOf(stack);
        times[kind].push(...(await bans.measure(size.bans)));
        tell(worker, { type: 'send', on: false });
        // What is under way is part of the load.
        const until = await counted(worker);
        loads[kind].push(load());
        if (until.failed !== '') throw new Error(`a report failed: ${until.failed}`);
        rows += until.acknowledged - from.acknowledged;
      }
      log(`round ${round + 1} of ${size.rounds}`);
    }
    const { acknowledged } = await counted(worker);
    const stored = await storedRows(stack);
    const copy = await bareCopy(stack, siteIds, size.copies);
    const seconds = sum(loads.with, 'seconds');
    const rest = { console: rate(loads.without, 'console'), postgres: rate(loads.without, 'postgres') };
    const micros = (of: 'console' | 'postgres') => round2((1e6 * (sum(loads.with, of) - rest[of] * seconds)) / rows);
    const banFigures = (kind: 'without' | 'with') => ({
      p50Ms: round2(median(times[kind])),
      p99Ms: round2(percentile(times[kind], 99)),
    });
    const ratio = percentile(times.with, 99) / percentile(times.without, 99);
    const perSecond = rows / seconds;
    return {
      figures: {
        ...size,
        rows,
        rowsPerSecond: Math.round(perSecond),
        stored: { acknowledged, inTable: stored },
        microsPerRow: { console: micros('console'), postgres: micros('postgres') },
        bareCopy: copy,
        bans: { without: banFigures('without'), with: banFigures('with'), p99Ratio: round2(ratio) },
      },
      aims: [
        { aim: `${size.rowsPerSecond} rows/s are taken`, reached: perSecond >= 0.95 * size.rowsPerSecond },
        { aim: 'each acknowledged row is in the table', reached: stored === acknowledged },
        { aim: `console ≤ ${CPU_AIM} µs a row`, reached: micros('console') <= CPU_AIM },
        { aim: `p99 of bans ≤ ${RATIO_AIM} × without rows`, reached: ratio <= RATIO_AIM },
      ],
    };
  } finally {
    fleet?.stop();
    await worker?.terminate();
    await stack.stop();
  }
}

function tell(worker: Worker, question: SenderQuestion): void {
  worker.postMessage(question);
}

/** Once nothing is under way. */
async function counted(worker: Worker): Promise<SenderCount> {
  tell(worker, { type: 'count' });
  const [count] = (await once(worker, 'message')) as [SenderCount];
  return count;
}

/** Processor time from now on. */
function loadOf(stack: ConsoleStack): () => Load {
  const now = () => ({
    seconds: performance.now() / 1000,
    console: cpuSeconds(stack.console.pid!),
    postgres: familyCpuSeconds(stack.postgresPid),
  });
  const before = now();
  return () => {
    const after = now();
    return {
      seconds: after.seconds - before.seconds,
      console: after.console - before.console,
      postgres: after.postgres - before.postgres,
    };
  };
}

const sum = (loads: readonly Load[], of: keyof Load): number => loads.reduce((all, load) => all + load[of], 0);
const rate = (loads: readonly Load[], of: 'console' | 'postgres'): number => sum(loads, of) / sum(loads, 'seconds');

async function makeSites(stack: ConsoleStack): Promise<string[]> {
  const { clusterId } = stack.facts;
  const input = { clusterId, name: 'first', domains: ['first.example'], origins: [{ address: 'origin.example.net' }] };
  const { site } = await stack.client.api<{ site: { id: string } }>('POST', '/sites', input);
  return [site.id, ...(await withRuntime(stack, (runtime) => copySites(runtime, clusterId, site.id, SITES - 1)))];
}

async function storedRows({ databaseUrl }: ConsoleStack): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ count: string }>('select count(*) from request_log');
  await client.end();
  return Number(rows[0]!.count);
}

/** COPY alone: rows are made before the time begins. */
async function bareCopy(
  { databaseUrl, postgresPid }: ConsoleStack,
  siteIds: readonly string[],
  copies: number,
): Promise<{ clientMicrosPerRow: number; postgresMicrosPerRow: number; rowsPerSecond: number }> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const client = await pool.connect();
  await client.query('create table bare (like request_log including indexes)');
  const make = rowMaker(siteIds, 99n);
  const batches = Array.from({ length: copies }, () => {
    const bytes = toBinary(ReportLogsRequestSchema, create(ReportLogsRequestSchema, { rows: make(COPY_ROWS) }));
    return readLogReport(bytes, { nodeId: 'bare', clusterId: 'bare', now: Date.now() }).rows.map(logFields);
  });
  const [begun, own, server] = [performance.now(), process.cpuUsage(), familyCpuSeconds(postgresPid)];
  for (const rows of batches) await copyIn(client, 'bare', LOG_COLUMNS, rows);
  const { user, system } = process.cpuUsage(own);
  const rows = copies * COPY_ROWS;
  const seconds = (performance.now() - begun) / 1000;
  const postgres = familyCpuSeconds(postgresPid) - server;
  client.release();
  await pool.end();
  return {
    clientMicrosPerRow: round2((user + system) / rows),
    postgresMicrosPerRow: round2((1e6 * postgres) / rows),
    rowsPerSecond: Math.round(rows / seconds),
  };
}
