// A purge from the API request to the first miss at a real edge and to its receipt by each simulated node, beside a ban of the
// same run: they alternate. Then what a purge of a tag costs a node that has stored many objects (Go benchmark).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readPurgeTargets } from '../models/cache/purge.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { clockMs } from './fleet/fleet.ts';
import { firstAnswer } from './lib/edge-probe.ts';
import { type FleetProcess, startFleetProcess } from './lib/fleet-process.ts';
import { type Stack, startStack, withRuntime } from './lib/stack.ts';
import { percentile, round2, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'a purge from the API request to the first miss, beside a ban, and a tag on many objects';

/** A thousand nodes report each of them; reports of the one before are in by then. */
const PAUSE_MS = 500;
const TIMES_BAN = 1.1;
/** What counts as the same in times of some microseconds on a shared machine. */
const TIMES_FEW = 1.5;
const FEW = 1000;

interface Run {
  stack: Stack;
  fleet: FleetProcess;
  runtime: Runtime;
}

interface Times {
  api: number;
  edge: number;
  fleet: number[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const many = quick ? 100_000 : 1_000_000;
  const tag = tagCosts([FEW, many], quick ? 3 : 7);
  log('costs of a tag measured');
  const nodes = quick ? 100 : 1000;
  const rounds = quick ? 20 : 200;
  const purges: Times[] = [];
  const bans: Times[] = [];
  const stack = await startStack('purge');
  try {
    const { site, accessKey } = stack.facts;
    await stack.client.request(
      'PATCH',
      `/api/v1/sites/${site.id}`,
      { cacheRules: [{ edgeTtlSeconds: 3600 }] },
      { 'x-api-key': accessKey },
    );
    const fleet = await startFleetProcess(stack, nodes);
    log(`${nodes} simulated nodes connected`);
    try {
      await withRuntime(stack, async (runtime) => {
        const at = { stack, fleet, runtime };
        for (let index = 0; index < rounds; index++) {
          // Neither is always the first after a pause.
          for (const each of index % 2 === 0 ? ['purge', 'ban'] : ['ban', 'purge']) {
            if (each === 'purge') purges.push(await onePurge(at));
            else bans.push(await oneBan(at, `198.51.100.${index + 1}`));
            await sleep(PAUSE_MS);
          }
          if ((index + 1) % 50 === 0) log(`${index + 1} of each`);
        }
      });
    } finally {
      fleet.stop();
    }
  } finally {
    await stack.stop();
  }
  return result({ nodes, many, tag, purges, bans });
}

async function onePurge({ stack, fleet, runtime }: Run): Promise<Times> {
  const { facts } = stack;
  const visitor = { edge: facts.edge.http, host: facts.site.host };
  await firstAnswer(visitor, (_, __, headers) => headers['x-cache'] === 'HIT');
  const before = clockMs();
  const missed = firstAnswer(visitor, (_, __, headers) => headers['x-cache'] === 'MISS');
  const [edge, { status, answeredAt }] = await Promise.all([
    missed,
    post(stack, '/api/v1/cache-tasks', { type: 'url', urls: [`http://${facts.site.host}/`] }),
  ]);
  if (status !== 201) throw new Error(`POST /cache-tasks answered ${status}`);
  const target = (await readPurgeTargets(runtime.pools.channel, [facts.clusterId])).get(facts.clusterId)!;
  const received = await fleet.receivedPurge(String(target.position));
  return { api: answeredAt - before, edge: edge - before, fleet: received.map((time) => time - before) };
}

async function oneBan({ stack, fleet }: Run, address: string): Promise<Times> {
  const { facts } = stack;
  const visitor = { edge: facts.edge.http, host: facts.site.host, headers: { [facts.clientIpHeader]: address } };
  const before = clockMs();
  const refused = firstAnswer(visitor, (status) => status === 403);
  const body = { scope: 'platform', cidr: address, reason: 'attack', durationSeconds: 3600 };
  const [edge, { status, change, answeredAt }] = await Promise.all([refused, post(stack, '/api/v1/bans', body)]);
  const [, sequence] = /^ban=\d+:(\d+)$/.exec(change) ?? [];
  if (sequence === undefined) throw new Error(`POST /bans answered ${status}`);
  const received = await fleet.receivedBan(sequence);
  return { api: answeredAt - before, edge: edge - before, fleet: received.map((time) => time - before) };
}

async function post(stack: Stack, url: string, body: object) {
  const { status, headers } = await stack.client.request('POST', url, body, { 'x-api-key': stack.facts.accessKey });
  return { status, change: headers.get('x-svc-change') ?? '', answeredAt: clockMs() };
}

/**
 * Microseconds for a purge of a tag on so many objects, until it is on disk, for the look at one of them after it, and of
 * processor time for both.
 */
function tagCosts(objects: readonly number[], rounds: number): Map<number, TagTimes> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-purge-'));
  try {
    const program = path.join(folder, 'store.test');
    const cwd = path.join(import.meta.dirname, '../agents/caddy/features/cache/store');
    const env = { ...process.env, CGO_ENABLED: '0', TMPDIR: folder };
    execFileSync('go', ['test', '-c', '-o', program], { cwd, env, timeout: 600_000 });
    const flags = ['-test.run', '^$', '-test.bench', '^BenchmarkPurgeOfATag$', '-test.benchtime', '200x'];
    const times = new Map(objects.map((count) => [count, { purge: [], look: [], cpu: [] } as TagTimes]));
    // In turn, so that what else the machine does meets both.
    for (let round = 0; round < rounds; round++) {
      for (const [count, { purge, look, cpu }] of times) {
        const own = { ...env, SVC_CACHE_TAGGED_OBJECTS: String(count) };
        const output = execFileSync(program, flags, { cwd, env: own, encoding: 'utf8', timeout: 600_000 });
        const figures = [...output.matchAll(/([\d.e+]+) (purge-µs|look-µs|cpu-µs)/g)];
        const of = (name: string) => Number(figures.find(([, , unit]) => unit === name)?.[1]);
        purge.push(of('purge-µs'));
        look.push(of('look-µs'));
        cpu.push(of('cpu-µs'));
      }
    }
    return times;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface TagTimes {
  purge: number[];
  look: number[];
  cpu: number[];
}

interface Measured {
  nodes: number;
  many: number;
  tag: ReturnType<typeof tagCosts>;
  purges: readonly Times[];
  bans: readonly Times[];
}

function result({ nodes, many, tag, purges, bans }: Measured): BenchResult {
  const edge = { purge: purges.map((each) => each.edge), ban: bans.map((each) => each.edge) };
  const fleet = { purge: purges.flatMap((each) => each.fleet), ban: bans.flatMap((each) => each.fleet) };
  const times = {
    edgeP50: percentile(edge.purge, 50) / percentile(edge.ban, 50),
    fleetP50: percentile(fleet.purge, 50) / percentile(fleet.ban, 50),
    fleetP99: percentile(fleet.purge, 99) / percentile(fleet.ban, 99),
  };
  const costs = (objects: number) => {
    const { purge, look, cpu } = tag.get(objects)!;
    return { purge: percentile(purge, 50), look: percentile(look, 50), cpu: percentile(cpu, 50) };
  };
  const [few, most] = [costs(FEW), costs(many)];
  const ofFleet = (sample: number[]) => ({
    p50Ms: round2(percentile(sample, 50)),
    p99Ms: round2(percentile(sample, 99)),
  });
  return {
    figures: {
      nodes,
      rounds: purges.length,
      api: { purge: summary(purges.map((each) => each.api)), ban: summary(bans.map((each) => each.api)) },
      edge: { purge: summary(edge.purge), ban: summary(edge.ban) },
      fleet: { purge: ofFleet(fleet.purge), ban: ofFleet(fleet.ban) },
      timesBan: Object.fromEntries(Object.entries(times).map(([name, value]) => [name, round2(value)])),
      tagMicroseconds: Object.fromEntries(
        [FEW, many].map((count) => {
          const { purge, look, cpu } = costs(count);
          return [count, { purge: round2(purge), look: round2(look), cpu: round2(cpu) }];
        }),
      ),
    },
    aims: [
      { aim: `edge: first miss p50 ≤ ${TIMES_BAN} × the ban's`, reached: times.edgeP50 <= TIMES_BAN },
      { aim: `fleet: p50 ≤ ${TIMES_BAN} × the ban's`, reached: times.fleetP50 <= TIMES_BAN },
      { aim: `fleet: p99 ≤ ${TIMES_BAN} × the ban's`, reached: times.fleetP99 <= TIMES_BAN },
      {
        aim: `processor time for a tag on ${many} objects ≤ ${TIMES_FEW} × one on ${FEW}`,
        reached: most.cpu <= TIMES_FEW * few.cpu,
      },
    ],
    notes: [
      'The clock for a tag runs until the purge is on disk, and shows what the disk takes: processor time is judged.',
    ],
    programs: { go: ['go', 'version'] },
  };
}
