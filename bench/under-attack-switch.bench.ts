// The global switch from the API request to the first challenge at a real edge, with 10,000 sites and 1,000 nodes
// following.
import { clockMs } from './fleet/fleet.ts';
import { copySites } from './lib/copy-sites.ts';
import { firstAnswer } from './lib/edge-probe.ts';
import { type FleetProcess, startFleetProcess } from './lib/fleet-process.ts';
import { type Stack, startStack, withRuntime } from './lib/stack.ts';
import { percentile, round2, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'PUT of global Under Attack to the first challenge at a real edge, 1,000 nodes and 10,000 sites';

/** Between two switches: the nodes' reports of the one before are in. */
const PAUSE_MS = 500;
const P99_MS = 500;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const nodes = quick ? 100 : 1000;
  const sites = quick ? 500 : 10_000;
  const switches = quick ? 10 : 100;
  const stack = await startStack('under-attack-switch');
  let fleet: FleetProcess | null = null;
  try {
    const { clusterId, site } = stack.facts;
    await withRuntime(stack, (runtime) => copySites(runtime, clusterId, site.id, sites - 1));
    log(`${sites} sites published`);
    fleet = await startFleetProcess(stack, nodes, { joinsAtHead: true });
    log(`${nodes} simulated nodes connected`);
    const on: number[] = [];
    const off: number[] = [];
    const reached: number[] = [];
    for (let index = 0; index < switches; index++) {
      for (const [underAttack, times] of [
        [true, on],
        [false, off],
      ] as const) {
        const one = await flip(stack, fleet, underAttack);
        times.push(one.edge);
        reached.push(...one.fleet);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
    const p99 = percentile(on, 99);
    return {
      figures: {
        nodes,
        sites,
        switches,
        ...summary(on),
        off: summary(off),
        fleet: { p50Ms: round2(percentile(reached, 50)), p99Ms: round2(percentile(reached, 99)) },
      },
      aims: [{ aim: `p99 ≤ ${P99_MS} ms`, reached: p99 <= P99_MS }],
    };
  } finally {
    fleet?.stop();
    await stack.stop();
  }
}

async function flip({ client, facts }: Stack, fleet: FleetProcess, underAttack: boolean) {
  const before = clockMs();
  const put = client.request(
    'PUT',
    '/api/v1/settings/protection',
    { underAttack, underAttackChallenge: 'js' },
    { 'x-api-key': facts.accessKey },
  );
  const edge = await firstAnswer(
    { edge: facts.edge.http, host: facts.site.host, headers: { [facts.clientIpHeader]: '203.0.113.1' } },
    (status) => status === (underAttack ? 403 : 200),
  );
  const answer = await put;
  const revision = new RegExp(`${facts.clusterId}=(\\d+)`).exec(answer.headers.get('x-svc-change') ?? '')?.[1];
  if (!revision) throw new Error(`PUT answered ${answer.status} ${JSON.stringify(answer.body)}`);
  const received = await fleet.receivedRevision(revision);
  return { edge: edge - before, fleet: received.map((time) => time - before) };
}
