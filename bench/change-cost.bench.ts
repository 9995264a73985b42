// What one change costs the console: processor time of all its services together, of PostgreSQL and of Redis, statements,
// Redis commands and timers, for a site's name, a site's protection and a ban, one after the other on an otherwise idle
// console. What an idle console takes in the same time is taken off.
//
// A round of its own profiles the console, which costs time itself: its parts tell shares, not sums.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Backends } from './change-cost/backends.ts';
import type { Answer, Counts, Question } from './change-cost/watch.ts';
import { type ConsoleStack, startConsoleStack } from './lib/console-stack.ts';
import { threadSeconds } from './lib/machine.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title =
  'processor time, statements and Redis commands of one PATCH of a site, one of its protection, one ban';

const CONSOLE_MS = 4;
const TRIPS = 8;
/** Between two changes: what follows one is over, and an access key takes ten a second. */
const PAUSE_MS = 110;
/** Fewer of a part are noise. */
const LEAST = 0.05;

const CHANGES = ['site', 'protection', 'ban'] as const;
type Change = (typeof CHANGES)[number];
/** The pool in which each change is written. */
const POOLS: Record<Change, string> = { site: 'svc-api', protection: 'svc-api', ban: 'svc-bans' };

/** Numbers by name, all of them per change. */
type Numbers = Record<string, number>;

interface Spent {
  main: { consoleMs: number; databaseMs: number; redisMs: number; statements: number; timers: number };
  databases: Numbers;
  statements: Numbers;
  commands: Numbers;
}
type Main = Spent['main'];

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 12;
  const perRound = quick ? 20 : 50;
  const stack = await startConsoleStack('change-cost', {
    preload: new URL('change-cost/watch.ts', import.meta.url),
  });
  const backends = new Backends(stack.databaseUrl, stack.postgresPid);
  try {
    await backends.connect();
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
    const idle = async () => sleep(5);
    const repeat = async (work: () => Promise<unknown>) => {
      // A key takes 600 requests in a row.
      await client.createKey(`from ${count}`);
      for (let index = 0; index < perRound; index++) {
        count++;
        await work();
        await sleep(PAUSE_MS);
      }
    };
    const measure = async (work: () => Promise<unknown>): Promise<Spent> => {
      const before = await spent(stack, backends);
      await repeat(work);
      const after = await spent(stack, backends);
      return {
        main: perChange(before.main, after.main, perRound) as unknown as Main,
        databases: perChange(before.databases, after.databases, perRound),
        statements: perChange(before.statements, after.statements, perRound),
        commands: perChange(before.commands, after.commands, perRound),
      };
    };
    const profile = async (work: () => Promise<unknown>): Promise<Numbers> => {
      await ask(stack, 'profile');
      await repeat(work);
      return perChange({}, (await ask(stack, 'parts')) as Numbers, perRound);
    };
    for (const change of CHANGES) await measure(changes[change]);
    const samples: Record<Change, Spent[]> = { site: [], protection: [], ban: [] };
    for (let round = 1; round <= rounds; round++) {
      for (const change of CHANGES) {
        // The same pauses without a change.
        const without = await measure(idle);
        const sample = less(await measure(changes[change]), without);
        samples[change].push(sample);
        const { consoleMs, databaseMs, statements } = sample.main;
        log(
          `round ${round} ${change}: ${round2(consoleMs)} ms, PostgreSQL ${round2(databaseMs)} ms, ${round2(statements)} statements`,
        );
      }
    }
    const profiles: Partial<Record<Change, Numbers>> = {};
    for (const change of CHANGES) {
      const without = await profile(idle);
      profiles[change] = minus(await profile(changes[change]), without);
    }
    const figures = Object.fromEntries(CHANGES.map((change) => [change, mainFigures(samples[change])]));
    const written = Object.fromEntries(CHANGES.map((change) => [change, writtenIn(POOLS[change], samples[change])]));
    const parts = Object.fromEntries(
      CHANGES.map((change) => [
        change,
        {
          console: listed(profiles[change]!),
          postgres: listed(medians(samples[change].map(({ databases }) => databases))),
          commands: listed(medians(samples[change].map(({ commands }) => commands))),
          statements: listed(medians(samples[change].map(({ statements }) => statements)), 0.5),
        },
      ]),
    );
    const aims = CHANGES.filter((change) => change !== 'ban').flatMap((change) => [
      { aim: `${change}: ≤ ${CONSOLE_MS} ms of the console`, reached: figures[change]!.consoleMs[2]! <= CONSOLE_MS },
      { aim: `${change}: ≤ ${TRIPS} statements to answer`, reached: written[change]! <= TRIPS },
    ]);
    return { figures: { changes: rounds * perRound, ...figures, written, parts }, aims };
  } finally {
    await backends.end();
    await stack.stop();
  }
}

async function ask({ console }: ConsoleStack, question: Question): Promise<Answer> {
  console.send(question);
  const [answer] = (await once(console, 'message')) as [Answer];
  return answer;
}

async function spent(stack: ConsoleStack, backends: Backends): Promise<Spent> {
  const { pools, statements, commands, timers } = (await ask(stack, 'counts')) as Counts;
  const { all, ...databases } = await backends.spent();
  return {
    main: {
      consoleMs: threadSeconds(stack.console.pid!) * 1000,
      databaseMs: all!,
      redisMs: threadSeconds(stack.redisPid) * 1000,
      statements: Object.values(pools).reduce((sum, each) => sum + each, 0),
      timers,
    },
    databases,
    statements,
    commands,
  };
}

function ban(count: number): object {
  const cidr = `9.${(count >> 16) & 255}.${(count >> 8) & 255}.${count & 255}`;
  return { scope: 'platform', cidr, reason: 'abuse', durationSeconds: 600 };
}

function perChange(before: object, after: object, changes: number): Numbers {
  const difference = minus(after as Numbers, before as Numbers);
  return Object.fromEntries(Object.entries(difference).map(([name, value]) => [name, value / changes]));
}

function minus(from: Numbers, what: Numbers): Numbers {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, value - (what[name] ?? 0)]));
}

function less(busy: Spent, idle: Spent): Spent {
  const of = (name: keyof Spent) => minus(busy[name] as unknown as Numbers, idle[name] as unknown as Numbers);
  return {
    main: of('main') as unknown as Main,
    databases: of('databases'),
    statements: of('statements'),
    commands: of('commands'),
  };
}

function medians(samples: readonly Numbers[]): Numbers {
  const names = [...new Set(samples.flatMap((sample) => Object.keys(sample)))];
  return Object.fromEntries(
    names.map((name) => [name, medianInterval(samples.map((sample) => sample[name] ?? 0)).median]),
  );
}

/** Statements of the pool that each change sends: jobs send others now and then. */
function writtenIn(pool: string, samples: readonly Spent[]): number {
  const sent = Object.entries(medians(samples.map(({ statements }) => statements)));
  return sent.reduce((sum, [name, count]) => sum + (name.startsWith(`${pool}: `) ? Math.round(count) : 0), 0);
}

/** The largest first. */
function listed(numbers: Numbers, least = LEAST): Numbers {
  const entries = Object.entries(numbers).filter(([, value]) => value >= least);
  return Object.fromEntries(entries.sort((a, b) => b[1] - a[1]).map(([name, value]) => [name, round2(value)]));
}

/** Of each figure its median between the ends of its interval. */
function mainFigures(samples: readonly Spent[]): Record<keyof Main, number[]> {
  const of = (name: keyof Main) => {
    const { low, median, high } = medianInterval(samples.map(({ main }) => main[name]));
    return [low, median, high].map(round2);
  };
  return {
    consoleMs: of('consoleMs'),
    databaseMs: of('databaseMs'),
    redisMs: of('redisMs'),
    statements: of('statements'),
    timers: of('timers'),
  };
}
