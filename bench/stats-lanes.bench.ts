// A ban from the API request to its receipt by each of 100 simulated nodes, while all of them deliver what they counted in a
// day without the console, and while none does: rounds of both by turns, in one run. Beside the times: how late the event
// loop of the console is, which other load of the machine delays less.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bans } from './lib/ban-times.ts';
import { type ConsoleStack, startConsoleStack } from './lib/console-stack.ts';
import { copySites } from './lib/copy-sites.ts';
import { type FleetProcess, startFleetProcess } from './lib/fleet-process.ts';
import { withRuntime } from './lib/stack.ts';
import { median, percentile, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';
import type { Loop } from './stats-lanes/loop.ts';

export const title = 'bans beside a day of counts that nodes deliver late';

const SITES = 50;
const AIM_RATIO = 1.5;
/** After delivering was begun or stopped. */
const SETTLE_MS = 1500;

interface Size {
  nodes: number;
  minutes: number;
  /** Of each kind. */
  rounds: number;
  bans: number;
}
const FULL: Size = { nodes: 100, minutes: 1440, rounds: 6, bans: 40 };
const QUICK: Size = { nodes: 20, minutes: 720, rounds: 2, bans: 5 };

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const size = quick ? QUICK : FULL;
  const stack = await startConsoleStack('stats-lanes', { preload: new URL('stats-lanes/loop.ts', import.meta.url) });
  let fleet: FleetProcess | null = null;
  try {
    const siteIds = await makeSites(stack);
    fleet = await startFleetProcess(stack, size.nodes);
    fleet.keepBacklog(siteIds, size.minutes);
    const kept = await fleet.backlogLeft();
    log(`${size.nodes} nodes are connected and hold ${kept} batches`);
    const bans = new Bans(stack, fleet);
    await bans.measure(5);
    const times = { without: [] as number[], with: [] as number[] };
    const loops = { without: [] as Loop[], with: [] as Loop[] };
    let leftAtEnd = kept;
    let delivering = 0;
    for (let round = 0; round < size.rounds; round++) {
      for (const kind of round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        const begun = performance.now();
        fleet.deliver(kind === 'with');
        await sleep(SETTLE_MS);
        await loopOf(stack);
        times[kind].push(...(await bans.measure(size.bans)));
        loops[kind].push(await loopOf(stack));
        if (kind === 'with') {
          leftAtEnd = await fleet.backlogLeft();
          delivering += performance.now() - begun;
          if (leftAtEnd === 0) throw new Error('nothing was left to deliver before the round was over');
        }
      }
      log(`round ${round + 1} of ${size.rounds}, ${leftAtEnd} batches are left`);
    }
    const figures = (kind: 'without' | 'with') => {
      const [sample, loop] = [times[kind], loops[kind]];
      const middle = (name: keyof Loop) => round2(median(loop.map((each) => each[name])));
      return {
        p50Ms: round2(percentile(sample, 50)),
        p99Ms: round2(percentile(sample, 99)),
        maxMs: round2(percentile(sample, 100)),
        loop: { delayP50Ms: middle('delayP50Ms'), delayP99Ms: middle('delayP99Ms'), busy: middle('busy') },
      };
    };
    const ratio = percentile(times.with, 99) / percentile(times.without, 99);
    return {
      figures: {
        ...size,
        batches: kept,
        without: figures('without'),
        with: figures('with'),
        p99Ratio: round2(ratio),
        batchesPerSecond: round2((kept - leftAtEnd) / (delivering / 1000)),
      },
      aims: [{ aim: `p99 with ≤ ${AIM_RATIO} × without`, reached: ratio <= AIM_RATIO }],
    };
  } finally {
    fleet?.stop();
    await stack.stop();
  }
}

/** Since the last time. */
async function loopOf({ console }: ConsoleStack): Promise<Loop> {
  console.send('loop');
  const [loop] = (await once(console, 'message')) as [Loop];
  return loop;
}

async function makeSites(stack: ConsoleStack): Promise<string[]> {
  const { clusterId } = stack.facts;
  const input = { clusterId, name: 'first', domains: ['first.example'], origins: [{ address: 'origin.example.net' }] };
  const { site } = await stack.client.api<{ site: { id: string } }>('POST', '/sites', input);
  return [site.id, ...(await withRuntime(stack, (runtime) => copySites(runtime, clusterId, site.id, SITES - 1)))];
}
