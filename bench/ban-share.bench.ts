// An automatic ban from the node that made it to all others: the first of a quiet period, which is reported at once, and
// one that waits for the report that follows.
import { setTimeout as sleep } from 'node:timers/promises';
import { firstAnswer } from './lib/edge-probe.ts';
import { type FleetProcess, startFleetProcess } from './lib/fleet-process.ts';
import { type Stack, startStack } from './lib/stack.ts';
import { percentile, round2, seeded } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'automatic ban on one node to its enforcement on 1,000 others';

/** Nodes report every five seconds. */
const PERIOD_MS = 5000;
const FIRST_P99_MS = 500;
const LATER_P99_MS = 6000;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const nodes = quick ? 100 : 1000;
  const rounds = quick ? 2 : 25;
  const stack = await startStack('ban-share');
  let fleet: FleetProcess | null = null;
  try {
    await banQuickly(stack);
    fleet = await startFleetProcess(stack, nodes);
    log(`${nodes} simulated nodes connected`);
    const first: number[] = [];
    const later: number[] = [];
    const random = seeded(11);
    for (let round = 0; round < rounds; round++) {
      await sleep(PERIOD_MS + 500);
      first.push(...(await oneBan(stack, fleet, `198.51.100.${2 * round + 1}`)));
      await sleep(random() * (PERIOD_MS - 1000));
      later.push(...(await oneBan(stack, fleet, `198.51.100.${2 * round + 2}`)));
    }
    const figures = (sample: number[]) => ({
      p50Ms: round2(percentile(sample, 50)),
      p99Ms: round2(percentile(sample, 99)),
    });
    return {
      figures: { nodes, rounds, ...figures([...first, ...later]), first: figures(first), later: figures(later) },
      aims: [
        { aim: `first of a quiet period: p99 ≤ ${FIRST_P99_MS} ms`, reached: percentile(first, 99) <= FIRST_P99_MS },
        { aim: `by the next report: p99 ≤ ${LATER_P99_MS} ms`, reached: percentile(later, 99) <= LATER_P99_MS },
      ],
    };
  } finally {
    fleet?.stop();
    await stack.stop();
  }
}

/** A policy by which the sixth request of a client within five seconds is one too many. */
async function banQuickly({ client, facts }: Stack): Promise<void> {
  await client.api('PATCH', `/sites/${facts.site.id}/protection`, {
    cc: { enabled: true, windowSeconds: 5, siteQps: 0, urlQps: 0, ipQps: 1, ipBanSeconds: 600, originErrorPercent: 0 },
  });
}

/** Milliseconds from the ban at the real edge to its receipt by each node. */
async function oneBan(stack: Stack, fleet: FleetProcess, address: string): Promise<number[]> {
  const { facts } = stack;
  const banned = await firstAnswer(
    { edge: facts.edge.http, host: facts.site.host, headers: { [facts.clientIpHeader]: address } },
    (status) => status === 403,
  );
  const received = await fleet.receivedBan(await sequenceOf(stack, address));
  return received.map((time) => time - banned);
}

/** The number under which the console shares the ban of an address. */
async function sequenceOf({ client, facts }: Stack, address: string): Promise<string> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const { items } = await client.rpc<{ items: { seq: string }[] }>('bans.list', {
      siteId: facts.site.id,
      address,
    });
    if (items[0]) return items[0].seq;
    await sleep(50);
  }
  throw new Error(`the console does not know the ban of ${address}`);
}
