// What each hand-made part between a request and its action brings: GET /sites/{id} with access keys, and requests with
// keys that somebody made up, with the part and with the plainest thing in its place, in turn in the same process.
import { once } from 'node:events';
import pg from 'pg';
import { startGatewayBench } from './gateway-auth/start.ts';
import type { Part } from './gateway-auth/switches.ts';
import { CONNECTIONS } from './lib/key-pool.ts';
import { cpuSeconds } from './lib/machine.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import { type WrkRun, wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title =
  'processor time and transactions of the database a request, with and without each part of the gateway';
export const needs = ['wrk'];

interface Comparison {
  name: string;
  without: Part;
  kind: 'read' | 'unknown';
}

/** The last one's flood has this address refused whatever it asks about, for a minute. */
const COMPARISONS: Comparison[] = [
  { name: 'memory of credentials', without: 'memory', kind: 'read' },
  { name: 'counts shared by requests', without: 'sharedCounts', kind: 'read' },
  { name: 'collected last uses', without: 'lastUsed', kind: 'read' },
  { name: 'counted failures, made-up keys', without: 'failedLookups', kind: 'unknown' },
];

interface Cost {
  micros: number;
  rps: number;
  transactions: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 9;
  const seconds = quick ? 1 : 2;
  const gateway = await startGatewayBench({ keys: quick ? 60 : 250 });
  const { child, folder, keys, readUrl } = gateway;
  const database = new pg.Client({ connectionString: gateway.databaseUrl });
  const leaveOut = async (parts: readonly Part[]) => {
    child.send([...parts]);
    await once(child, 'message');
  };
  const request = (kind: Comparison['kind']): Promise<WrkRun> =>
    kind === 'read'
      ? keys.run(folder, seconds, { url: readUrl, method: 'GET', body: 'nil' })
      : wrk(folder, { url: readUrl, seconds, connections: CONNECTIONS, cpus: '1', script: UNKNOWN_KEYS });
  const cost = async (parts: readonly Part[], kind: Comparison['kind']): Promise<Cost> => {
    await leaveOut(parts);
    const before = { cpu: cpuSeconds(child.pid!), transactions: await transactions(database) };
    const { requests, rps, unexpected } = await request(kind);
    // A starved machine breaks off some.
    if (kind === 'read' && unexpected > requests / 100) throw new Error(`${unexpected} unexpected answers`);
    const cpu = cpuSeconds(child.pid!) - before.cpu;
    return {
      micros: (cpu / requests) * 1e6,
      rps,
      transactions: ((await transactions(database)) - before.transactions) / requests,
    };
  };
  try {
    await database.connect();
    await cost([], 'read');
    const figures: Record<string, unknown> = {};
    for (const { name, without, kind } of COMPARISONS) {
      const costs = { whole: [] as Cost[], without: [] as Cost[] };
      for (let round = 1; round <= rounds; round++) {
        const turns = [
          async () => costs.whole.push(await cost([], kind)),
          async () => costs.without.push(await cost([without], kind)),
        ];
        // Neither is always the first.
        for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
        const [whole, plain] = [costs.whole.at(-1)!.micros, costs.without.at(-1)!.micros];
        log(`round ${round} ${name}: ${Math.round(whole)} µs, without ${Math.round(plain)} µs`);
      }
      figures[name] = figuresOf(costs);
    }
    return { figures, aims: [], programs: { wrk: ['wrk', '-v'], postgres: ['psql', '--version'] } };
  } finally {
    await database.end().catch(() => undefined);
    await gateway.stop();
  }
}

function figuresOf({ whole, without }: { whole: Cost[]; without: Cost[] }) {
  const median = (sample: readonly Cost[], name: keyof Cost) => medianInterval(sample.map((each) => each[name])).median;
  const more = medianInterval(whole.map(({ micros }, round) => without[round]!.micros / micros));
  return {
    micros: round2(median(whole, 'micros')),
    microsWithout: round2(median(without, 'micros')),
    timesWithout: [round2(more.low), round2(more.median), round2(more.high)],
    rps: Math.round(median(whole, 'rps')),
    rpsWithout: Math.round(median(without, 'rps')),
    transactions: round2(median(whole, 'transactions')),
    transactionsWithout: round2(median(without, 'transactions')),
  };
}

/** Each request with another key that nobody has. */
const UNKNOWN_KEYS = `
local n = 0
request = function()
  n = n + 1
  wrk.headers["x-api-key"] = "ewk_" .. string.format("%043d", n)
  return wrk.format("GET", nil, wrk.headers, nil)
end
`;

/** Transactions since the database began, as its backends have told. */
async function transactions(database: pg.Client): Promise<number> {
  // They tell their counts once a second at most.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  const { rows } = await database.query(
    'select (xact_commit + xact_rollback)::float as n from pg_stat_database where datname = current_database()',
  );
  return rows[0].n;
}
