// A change that makes a site fail, from the request that publishes it until visitors are served again: undone by itself, and
// tried by a canary. Beside it what watching costs a node, and what a canary that runs costs a publication.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { clockMs } from './fleet/fleet.ts';
import { firstAnswer } from './lib/edge-probe.ts';
import { cpuSeconds } from './lib/machine.ts';
import { type Stack, startStack } from './lib/stack.ts';
import { medianInterval, percentile, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'a harmful change: published until served again; what watching and a canary cost';

const REVERTED_MS = 60_000;
/** Between two requests of the visitors. */
const PAUSE_MS = 10;
const TRIES = 5;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 20;
  // Each takes half a minute: nodes without the canary are waited for.
  const canaries = quick ? 1 : 5;
  const stack = await startStack('rollout');
  const [good, bad] = await Promise.all([startOrigin(200), startOrigin(500)]);
  try {
    // Before anything was published that is watched.
    const node = await watchedNode(stack, quick ? 20_000 : 30_000);
    const undone = await revertedIn(stack, { rounds, good, bad, policy: { enabled: false, undoDirect: true }, log });
    const publishing = await publishingBeside(stack, quick ? 20 : 200);
    const tried = await revertedIn(stack, {
      rounds: canaries,
      good,
      bad,
      policy: { enabled: true, undoDirect: false, windowSeconds: 60 },
      log,
    });
    return {
      figures: {
        undone: figuresOf(undone),
        canary: figuresOf(tried),
        watching: node,
        publishing,
      },
      aims: [
        { aim: `undone and served again ≤ ${REVERTED_MS / 1000} s (max)`, reached: Math.max(...undone) <= REVERTED_MS },
        {
          aim: `canary ended, served again ≤ ${REVERTED_MS / 1000} s (max)`,
          reached: Math.max(...tried) <= REVERTED_MS,
        },
      ],
      notes: ['one edge node that visitors ask without pause; a canary of it has no other node to be compared with'],
    };
  } finally {
    for (const { server } of [good, bad]) {
      server.closeAllConnections();
      server.close();
    }
    await stack.stop();
  }
}

function figuresOf(times: readonly number[]) {
  const { median, low, high } = medianInterval(times);
  return {
    rounds: times.length,
    p50Ms: round2(median),
    p50Interval: [round2(low), round2(high)],
    maxMs: round2(Math.max(...times)),
  };
}

interface Origin {
  server: Server;
  port: number;
}

async function startOrigin(status: number): Promise<Origin> {
  const server = createServer((_request, response) => {
    response.statusCode = status;
    response.end('origin');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

interface Reverting {
  rounds: number;
  good: Origin;
  bad: Origin;
  policy: object;
  log: (text: string) => void;
}

/** How long visitors met errors, from the request that published the change, of each round. */
async function revertedIn(stack: Stack, { rounds, good, bad, policy, log }: Reverting): Promise<number[]> {
  const { facts, client } = stack;
  await client.api('PUT', `/clusters/${facts.clusterId}/rollout-policy`, { ...policy, minRequests: 100 });
  const goTo = ({ port }: Origin) =>
    client.api('PATCH', `/sites/${facts.site.id}`, { origins: [{ address: '127.0.0.1', port }] });
  const answers = async (status: number) => {
    const asked = () => firstAnswer({ edge: facts.edge.http, host: facts.site.host }, (seen) => seen === status);
    // It asks for half a minute.
    for (let tries = 0; tries < TRIES; tries++) if ((await asked().catch(() => null)) !== null) return;
    await asked();
  };
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await goTo(good);
    await finished(stack);
    await answers(200);
    // Long enough that it is known how it was before.
    await ask(stack, 8_000);
    const before = clockMs();
    const asking = new AbortController();
    const visitors = ask(stack, 300_000, asking.signal);
    await goTo(bad);
    await answers(500);
    await answers(200);
    times.push(clockMs() - before);
    asking.abort();
    await visitors;
    if ((round + 1) % 5 === 0) log(`${round + 1} rounds`);
  }
  return times;
}

/** Promotes what is tried. */
async function finished({ facts, client }: Stack): Promise<void> {
  const { candidateRevision } = await client.api<{ candidateRevision: string | null }>(
    'GET',
    `/clusters/${facts.clusterId}/rollout`,
  );
  if (candidateRevision !== null) await client.api('POST', `/clusters/${facts.clusterId}/rollout/promote`, {});
}

/** Visitors for a while. */
async function ask({ facts }: Stack, ms: number, signal?: AbortSignal): Promise<void> {
  const target = { edge: facts.edge.http, host: facts.site.host };
  for (const until = clockMs() + ms; clockMs() < until && !signal?.aborted; ) {
    await firstAnswer(target, () => true);
    await sleep(PAUSE_MS);
  }
}

/** Processor time of agent and Caddy of an idle node in a minute, watched and not. */
async function watchedNode({ facts, client }: Stack, ms: number) {
  const used = async () => {
    const before = [facts.pids.agent, facts.pids.caddy].map(cpuSeconds);
    await sleep(ms);
    const after = [facts.pids.agent, facts.pids.caddy].map(cpuSeconds);
    return after.map((seconds, at) => round2(((seconds - before[at]!) * 1000 * 60_000) / ms));
  };
  const unwatched = await used();
  await client.api('PUT', `/clusters/${facts.clusterId}/rollout-policy`, { enabled: false, undoDirect: true });
  await client.api('PATCH', `/sites/${facts.site.id}`, { contentSettings: { requestBodyLimit: 3_145_728 } });
  // A report is under way by then.
  await sleep(6_000);
  const watched = await used();
  return {
    agentMsPerMinute: { watched: watched[0], unwatched: unwatched[0] },
    caddyMsPerMinute: { watched: watched[1], unwatched: unwatched[1] },
    reportsPerMinute: 12,
  };
}

/** How long a change of a site takes the API, with a canary under way and without. */
async function publishingBeside({ facts, client }: Stack, changes: number) {
  const timed = async () => {
    const times: number[] = [];
    for (let index = 0; index < changes; index++) {
      const before = performance.now();
      await client.api('PATCH', `/sites/${facts.site.id}`, {
        contentSettings: { requestBodyLimit: 1_048_576 + 1024 * (index % 2) },
      });
      times.push(performance.now() - before);
      // A key may not ask more often.
      await sleep(120);
    }
    return { p50Ms: round2(percentile(times, 50)), p99Ms: round2(percentile(times, 99)) };
  };
  const policy = `/clusters/${facts.clusterId}/rollout-policy`;
  await client.api('PUT', policy, { enabled: false, undoDirect: false });
  const without = await timed();
  const groups = await client.api<{ items: { id: string }[] }>('GET', `/node-groups?clusterId=${facts.clusterId}`);
  await client.api('PATCH', `/node-groups/${groups.items[0]!.id}`, { isCanary: true });
  await client.api('PUT', policy, { enabled: true, windowSeconds: 3600 });
  const during = await timed();
  await client.api('PUT', policy, { enabled: false });
  return { without, during };
}
