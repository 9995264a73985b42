// What the conventions of the API cost: GET /sites/{id} with an access key, a service account and a session, the rate limit
// and the machinery of idempotency switched on, beside the same action of the same process without them. wrk has one core;
// the console shares the other with PostgreSQL and Redis.
import pg from 'pg';
import type { ConsoleClient } from '../bin/lib/console-client.ts';
import { startGatewayBench } from './gateway-auth/start.ts';
import { CONNECTIONS } from './lib/key-pool.ts';
import { cpuSeconds } from './lib/machine.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { type WrkRun, wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'GET site with access key, service account and session, beside the same without the conventions';
export const needs = ['wrk'];

const MOST_OVERHEAD_PERCENT = 15;
/** Rows written by a read: the console's own jobs write some, now and then. */
const MOST_WRITES_PER_READ = 0.01;

interface Subject {
  name: 'bare' | 'accessKey' | 'serviceAccount' | 'barePost' | 'session';
  run(seconds: number): Promise<WrkRun>;
}

/** The same answer without the conventions, to the same kind of request: a session's reads are POSTs with a body. */
const BASELINES = { accessKey: 'bare', serviceAccount: 'bare', session: 'barePost' } as const;

interface Measured {
  rps: number[];
  p50: number[];
  p99: number[];
  /** Processor time of the console a request, in microseconds. */
  micros: number[];
  requests: number;
  unexpected: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 9;
  const seconds = quick ? 1 : 2;
  const gateway = await startGatewayBench({ keys: quick ? 40 : 250 });
  const { folder, client, barePort, readUrl, siteId, keys } = gateway;
  const database = new pg.Client({ connectionString: gateway.databaseUrl });
  try {
    await database.connect();
    const account = await client.rpc<{ id: string }>('serviceAccounts.create', { name: 'b', scopes: ['sites:read'] });
    const { secret } = await client.rpc<{ secret: string }>('serviceAccounts.createKey', { id: account.id });
    const read = { url: readUrl, seconds: 0, connections: CONNECTIONS, cpus: '1' };
    const subjects: Subject[] = [
      {
        name: 'bare',
        run: (length) => wrk(folder, { ...read, url: `http://127.0.0.1:${barePort}/${siteId}`, seconds: length }),
      },
      {
        name: 'accessKey',
        run: (length) => keys.run(folder, length, { url: read.url, method: 'GET', body: 'nil' }),
      },
      {
        name: 'serviceAccount',
        run: (length) => wrk(folder, { ...read, seconds: length, headers: { 'x-api-key': secret } }),
      },
      ...(['barePost', 'session'] as const).map((name) => {
        const target = name === 'session' ? `${gateway.url}/rpc/sites/get` : `http://127.0.0.1:${barePort}/`;
        const script = rpc(client, siteId);
        return { name, run: (length: number) => wrk(folder, { ...read, url: target, seconds: length, script }) };
      }),
    ];
    for (const subject of subjects) await subject.run(1);
    const before = await rowsWritten(database);
    const measured = await measure(subjects, rounds, seconds, gateway.child.pid!, log);
    const requests = [...measured.values()].reduce((sum, entry) => sum + entry.requests, 0);
    const writes = ((await rowsWritten(database)) - before) / requests;
    const figures: Record<string, unknown> = {};
    for (const [name, entry] of measured) {
      if (entry.unexpected > entry.requests / 1000) throw new Error(`${name}: ${entry.unexpected} unexpected answers`);
      const rps = medianInterval(entry.rps);
      figures[name] = {
        rps: Math.round(rps.median),
        rpsInterval: [Math.round(rps.low), Math.round(rps.high)],
        p50Ms: round2(median(entry.p50)),
        p99Ms: round2(median(entry.p99)),
        cpuMicrosPerRequest: round2(median(entry.micros)),
        ...(isBaseline(name) ? {} : { overheadPercent: round2(overhead(measured, name)) }),
      };
    }
    figures.rowsWrittenPerRead = Math.round(writes * 1e6) / 1e6;
    const overheads = (Object.keys(BASELINES) as (keyof typeof BASELINES)[]).map(
      (name) => [name, overhead(measured, name)] as const,
    );
    return {
      figures,
      aims: [
        ...overheads.map(([name, percent]) => ({
          aim: `${name}: at most ${MOST_OVERHEAD_PERCENT} % more processor time of the console a request than the same answer without the conventions`,
          reached: percent <= MOST_OVERHEAD_PERCENT,
        })),
        { aim: 'a read writes nothing to the database', reached: writes <= MOST_WRITES_PER_READ },
      ],
      programs: { wrk: ['wrk', '-v'], postgres: ['psql', '--version'] },
    };
  } finally {
    await database.end().catch(() => undefined);
    await gateway.stop();
  }
}

/**
 * What a request costs the console more than the same answer without the conventions, round by round: processor time, because requests per second
 * follow whatever else the machine does.
 */
function overhead(measured: ReadonlyMap<Subject['name'], Measured>, name: keyof typeof BASELINES): number {
  const bare = measured.get(BASELINES[name])!.micros;
  return median(measured.get(name)!.micros.map((micros, round) => (micros / bare[round]! - 1) * 100));
}

function isBaseline(name: Subject['name']): name is 'bare' | 'barePost' {
  return !(name in BASELINES);
}

/** The subjects in turn, each round from another one on, so that none always follows the same. */
async function measure(
  subjects: readonly Subject[],
  rounds: number,
  seconds: number,
  pid: number,
  log: BenchContext['log'],
): Promise<Map<Subject['name'], Measured>> {
  const measured = new Map<Subject['name'], Measured>(
    subjects.map(({ name }) => [name, { rps: [], p50: [], p99: [], micros: [], requests: 0, unexpected: 0 }]),
  );
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < subjects.length; turn++) {
      const { name, run } = subjects[(round + turn) % subjects.length]!;
      const before = cpuSeconds(pid);
      const result = await run(seconds);
      const micros = ((cpuSeconds(pid) - before) / result.requests) * 1e6;
      const entry = measured.get(name)!;
      entry.rps.push(result.rps);
      entry.micros.push(micros);
      entry.p50.push(result.p50Ms);
      entry.p99.push(result.p99Ms);
      entry.requests += result.requests;
      entry.unexpected += result.unexpected;
    }
    const line = [...measured].map(
      ([name, { rps, micros }]) => `${name} ${Math.round(rps[round]!)} (${Math.round(micros[round]!)} µs)`,
    );
    log(`round ${round + 1}: ${line.join(', ')} req/s`);
  }
  return measured;
}

/** A read as the Web UI makes it. */
function rpc(client: ConsoleClient, id: string): string {
  return `
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["x-csrf-token"] = "orpc"
wrk.headers["cookie"] = "${client.cookie}"
wrk.body = '{"id":"${id}"}'
`;
}

/** Rows inserted, updated and deleted since the database began. */
async function rowsWritten(database: pg.Client): Promise<number> {
  // Backends tell their counts once a second at most.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const { rows } = await database.query(
    'select sum(n_tup_ins + n_tup_upd + n_tup_del)::float as n from pg_stat_user_tables',
  );
  return rows[0].n;
}
