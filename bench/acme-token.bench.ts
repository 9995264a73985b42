// What certificate authorities are answered, from before it is written to its receipt by each simulated node and to the
// first right answer of a real edge. The bench writes as the console's worker does.
import { setTimeout as sleep } from 'node:timers/promises';
import { putTokens } from '../models/certificates/acme-token.ts';
import { systemCall } from '../runtime/call.ts';
import { write } from '../runtime/write.ts';
import { clockMs } from './fleet/fleet.ts';
import { firstAnswer } from './lib/edge-probe.ts';
import { startFleetProcess } from './lib/fleet-process.ts';
import { startStack, withRuntime } from './lib/stack.ts';
import { percentile, round2, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'an answer for a certificate authority at 1,000 simulated nodes and at a real edge';

/** A thousand nodes acknowledge each of them; reports of the one before are in by then. */
const PAUSE_MS = 500;
const P99_MS = 500;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const nodes = quick ? 100 : 1000;
  const tokens = quick ? 10 : 200;
  const stack = await startStack('acme-token');
  const { facts } = stack;
  try {
    const fleet = await startFleetProcess(stack, nodes);
    log(`${nodes} simulated nodes connected`);
    try {
      return await withRuntime(stack, async (runtime) => {
        const written: number[] = [];
        const edge: number[] = [];
        const received: number[] = [];
        for (let index = 0; index < tokens; index++) {
          const token = `bench-${index}`;
          const answer = { host: facts.site.host, token, keyAuthorization: `${token}.thumbprint` };
          const target = {
            edge: facts.edge.http,
            host: answer.host,
            path: `/.well-known/acme-challenge/${token}`,
          };
          const answered = firstAnswer(target, (status, body) => status === 200 && body === answer.keyAuthorization);
          const before = clockMs();
          const places = await write(runtime, systemCall('acme'), {}, (tx) =>
            putTokens(tx, [facts.clusterId], [answer]),
          );
          written.push(clockMs() - before);
          const { sequence } = places.get(facts.clusterId)!;
          edge.push((await answered) - before);
          received.push(...(await fleet.receivedAcme(String(sequence))).map((at) => at - before));
          if ((index + 1) % 50 === 0) log(`${index + 1} tokens`);
          await sleep(PAUSE_MS);
        }
        return result(nodes, { written, edge, received });
      });
    } finally {
      fleet.stop();
    }
  } finally {
    await stack.stop();
  }
}

interface Times {
  written: number[];
  edge: number[];
  /** Of each node. */
  received: number[];
}

function result(nodes: number, { written, edge, received }: Times): BenchResult {
  const p99 = { edge: percentile(edge, 99), fleet: percentile(received, 99) };
  return {
    figures: {
      nodes,
      tokens: written.length,
      written: summary(written),
      edge: summary(edge),
      fleet: { p50Ms: round2(percentile(received, 50)), p99Ms: round2(p99.fleet) },
    },
    aims: [
      { aim: `edge: first right answer p99 ≤ ${P99_MS} ms`, reached: p99.edge <= P99_MS },
      { aim: `fleet: received p99 ≤ ${P99_MS} ms`, reached: p99.fleet <= P99_MS },
    ],
    programs: { redis: ['redis-server', '--version'] },
  };
}
