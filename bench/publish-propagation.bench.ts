// A change of one site from the API request to the new answer at a real edge, 100 simulated nodes following. After each
// change the floor (lib/floor.ts) is measured.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { clockMs } from './fleet/fleet.ts';
import { firstAnswer } from './lib/edge-probe.ts';
import { startFleetProcess } from './lib/fleet-process.ts';
import { besideFloor, type Floor, startFloor } from './lib/floor.ts';
import { startStack } from './lib/stack.ts';
import { medianInterval, percentile, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'PATCH of one site to the new answer at a real edge, 100 simulated nodes following';

const NODES = 100;
const P50_MS = 100;
const P99_MS = 500;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const changes = quick ? 20 : 200;
  const stack = await startStack('publish-propagation');
  // Two origins that say who they are: the site moves between them.
  const origins = await Promise.all(['a', 'b'].map(startOrigin));
  const fleet = await startFleetProcess(stack, NODES);
  let floor: Floor | null = null;
  try {
    const { facts } = stack;
    const edge: number[] = [];
    const nodes: number[] = [];
    const api: number[] = [];
    const floorTimes: number[] = [];
    for (let index = 0; index < changes; index++) {
      const target = origins[index % 2]!;
      const before = clockMs();
      const patched = stack.client.request(
        'PATCH',
        `/api/v1/sites/${facts.site.id}`,
        { origins: [{ address: '127.0.0.1', port: target.port }] },
        { 'x-api-key': facts.accessKey },
      );
      const seen = firstAnswer(
        { edge: facts.edge.http, host: facts.site.host },
        (_status, body) => body === target.name,
      );
      const answer = await patched;
      api.push(clockMs() - before);
      const revision = new RegExp(`^${facts.clusterId}=(\\d+)$`).exec(answer.headers.get('x-svc-change') ?? '')?.[1];
      if (!revision) throw new Error(`PATCH answered ${answer.status} ${JSON.stringify(answer.body)}`);
      edge.push((await seen) - before);
      nodes.push(...(await fleet.receivedRevision(revision)).map((time) => time - before));
      floor ??= await startFloor(stack, { feed: 'config', streams: NODES });
      floorTimes.push(...(await floor.push()));
      if ((index + 1) % 50 === 0) log(`${index + 1} changes`);
    }
    const beside = besideFloor(floorTimes, edge, nodes);
    const interval = medianInterval(edge);
    const p99 = percentile(edge, 99);
    return {
      figures: {
        changes,
        p50Ms: round2(interval.median),
        p50Interval: [round2(interval.low), round2(interval.high)],
        p99Ms: round2(p99),
        api: { p50Ms: round2(percentile(api, 50)), p99Ms: round2(percentile(api, 99)) },
        fleet: { p50Ms: round2(percentile(nodes, 50)), p99Ms: round2(percentile(nodes, 99)) },
        ...beside.figures,
      },
      aims: [
        { aim: `p50 ≤ ${P50_MS} ms (upper end of the interval)`, reached: interval.high <= P50_MS },
        { aim: `p99 ≤ ${P99_MS} ms`, reached: p99 <= P99_MS },
        ...beside.aims,
      ],
    };
  } finally {
    floor?.stop();
    fleet.stop();
    for (const origin of origins) origin.close();
    await stack.stop();
  }
}

async function startOrigin(name: string): Promise<{ name: string; port: number; close(): void }> {
  const server = createServer((_request, response) => response.end(name));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { name, port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
