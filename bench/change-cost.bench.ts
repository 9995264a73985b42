// What one change costs the console: processor time of all its services together, of PostgreSQL, and statements, for a
// site's name, a site's protection and a ban, one after the other on an otherwise idle console. What an idle console takes
// in the same time is taken off.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConsoleStack, startConsoleStack } from './lib/console-stack.ts';
import { cpuSeconds, familyCpuSeconds } from './lib/machine.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'processor time and statements of one PATCH of a site, one of its protection, one ban';

const CONSOLE_MS = 4;
const TRIPS = 8;
/** Between two changes: what follows one is over, and an access key takes ten a second. */
const PAUSE_MS = 110;

const CHANGES = ['site', 'protection', 'ban'] as const;
type Change = (typeof CHANGES)[number];
/** The pool in which each change is written. */
const POOLS: Record<Change, string> = { site: 'svc-api', protection: 'svc-api', ban: 'svc-bans' };

interface Sample {
  consoleMs: number;
  databaseMs: number;
  statements: number;
  written: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 12;
  const perRound = quick ? 20 : 50;
  const stack = await startConsoleStack('change-cost', {
    preload: new URL('change-cost/count-statements.ts', import.meta.url),
  });
  try {
    const { client } = stack;
    const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
      domains: ['change.example.com'],
      origins: [{ address: '8.8.8.8' }],
    });
    let count = 0;
    const changes: Record<Change, () => Promise<unknown>> = {
      site: () => client.api('PATCH', `/sites/${site.id}`, { name: `name ${count}` }),
      protection: () => client.api('PATCH', `/sites/${site.id}/protection`, { underAttack: count % 2 === 0 }),
      ban: () => client.api('POST', '/bans', ban(count)),
    };
    const samples: Record<Change, Sample[]> = { site: [], protection: [], ban: [] };
    const measure = async (work: () => Promise<unknown>, pool: string): Promise<Sample> => {
      // A key takes 600 requests in a row.
      await client.createKey(`from ${count}`);
      const before = await spent(stack);
      for (let index = 0; index < perRound; index++) {
        count++;
        await work();
        await sleep(PAUSE_MS);
      }
      const after = await spent(stack);
      const per = (name: 'consoleMs' | 'databaseMs') => (after[name] - before[name]) / perRound;
      const all = (counts: Record<string, number>) => Object.values(counts).reduce((sum, each) => sum + each, 0);
      return {
        consoleMs: per('consoleMs'),
        databaseMs: per('databaseMs'),
        statements: (all(after.statements) - all(before.statements)) / perRound,
        written: ((after.statements[pool] ?? 0) - (before.statements[pool] ?? 0)) / perRound,
      };
    };
    for (const change of CHANGES) await measure(changes[change], POOLS[change]);
    for (let round = 1; round <= rounds; round++) {
      for (const change of CHANGES) {
        // The same pauses without a change.
        const idle = await measure(async () => sleep(5), POOLS[change]);
        const busy = await measure(changes[change], POOLS[change]);
        samples[change].push(less(busy, idle));
        const { consoleMs, databaseMs, statements } = samples[change].at(-1)!;
        log(
          `round ${round} ${change}: ${round2(consoleMs)} ms, PostgreSQL ${round2(databaseMs)} ms, ${round2(statements)} statements`,
        );
      }
    }
    const figures = Object.fromEntries(CHANGES.map((change) => [change, figuresOf(samples[change])]));
    const aims = CHANGES.filter((change) => change !== 'ban').flatMap((change) => [
      { aim: `${change}: ≤ ${CONSOLE_MS} ms of the console`, reached: figures[change]!.consoleMs[2]! <= CONSOLE_MS },
      { aim: `${change}: ≤ ${TRIPS} statements to answer`, reached: figures[change]!.written[1]! <= TRIPS },
    ]);
    return { figures: { changes: rounds * perRound, ...figures }, aims };
  } finally {
    await stack.stop();
  }
}

interface Spent {
  consoleMs: number;
  databaseMs: number;
  /** By pool. */
  statements: Record<string, number>;
}

async function spent({ console, postgresPid }: ConsoleStack): Promise<Spent> {
  console.send('statements');
  const [statements] = (await once(console, 'message')) as [Record<string, number>];
  return { consoleMs: cpuSeconds(console.pid!) * 1000, databaseMs: familyCpuSeconds(postgresPid) * 1000, statements };
}

function ban(count: number): object {
  const cidr = `9.${(count >> 16) & 255}.${(count >> 8) & 255}.${count & 255}`;
  return { scope: 'platform', cidr, reason: 'abuse', durationSeconds: 600 };
}

function less(busy: Sample, idle: Sample): Sample {
  return {
    consoleMs: busy.consoleMs - idle.consoleMs,
    databaseMs: busy.databaseMs - idle.databaseMs,
    statements: busy.statements - idle.statements,
    written: busy.written - idle.written,
  };
}

/** Of each figure its median between the ends of its interval. */
function figuresOf(samples: readonly Sample[]): Record<keyof Sample, number[]> {
  const of = (name: keyof Sample) => {
    const { low, median, high } = medianInterval(samples.map((sample) => sample[name]));
    return [low, median, high].map(round2);
  };
  return {
    consoleMs: of('consoleMs'),
    databaseMs: of('databaseMs'),
    statements: of('statements'),
    written: of('written'),
  };
}
