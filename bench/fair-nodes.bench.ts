// Bans and counts that a hundred nodes report, each until it is acknowledged, while another node with a correct certificate
// does its worst, and while it does not: by turns, in one run.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Hostile } from './fair-nodes/hostile.ts';
import { Connection, type Identity } from './fleet/connection.ts';
import { enrollNodes, inParallel, whileBusy } from './fleet/enroll-nodes.ts';
import { ALL_FEATURES } from './fleet/fleet.ts';
import { reportedBan } from './fleet/hostile-node.ts';
import { type ConsoleStack, startConsoleStack } from './lib/console-stack.ts';
import { median, percentile, round2, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'reports of nodes beside one that does its worst';

const SETTLE_MS = 2_000;
/** Of all nodes, one after the other, as reports of a fleet are spread over time. */
const AT_ONCE = 4;

type Kind = 'without' | 'with';

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const nodes = quick ? 20 : 100;
  const rounds = quick ? 2 : 6;
  const stack = await startConsoleStack('fair-nodes');
  let honest: Honest | null = null;
  try {
    const { clusterId, nodeApiUrl } = stack.facts;
    const newToken = () =>
      stack.client.api<{ token: string; caSha256: string }>('POST', '/enrollment-tokens', { clusterId });
    const { site } = await stack.client.api<{ site: { id: string } }>('POST', '/sites', {
      domains: ['fair.example'],
      origins: [{ address: 'origin.example.net' }],
    });
    const [hostile, ...identities] = await enrollNodes(nodes + 1, nodeApiUrl, newToken, ALL_FEATURES, 4);
    honest = new Honest(stack, identities, site.id);
    await honest.beat();
    log(`${nodes} nodes and a hostile one are enrolled`);
    const times: Record<Kind, { ban: number[]; counts: number[] }> = {
      without: { ban: [], counts: [] },
      with: { ban: [], counts: [] },
    };
    await honest.report({ ban: [], counts: [] });
    for (let round = 0; round < rounds; round++) {
      for (const kind of round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        const workerData: Hostile = { serverUrl: nodeApiUrl, identity: hostile!, siteId: site.id };
        const worker =
          kind === 'with' ? new Worker(new URL('fair-nodes/hostile.ts', import.meta.url), { workerData }) : null;
        if (worker) await once(worker, 'online');
        await sleep(SETTLE_MS);
        await honest.report(times[kind]);
        await worker?.terminate();
        await sleep(SETTLE_MS);
      }
      log(`round ${round + 1} of ${rounds}`);
    }
    const ratio = (of: 'ban' | 'counts') => round2(median(times.with[of]) / median(times.without[of]));
    return {
      figures: {
        nodes,
        rounds,
        ban: { without: summary(times.without.ban), with: summary(times.with.ban), p50Ratio: ratio('ban') },
        counts: { without: summary(times.without.counts), with: summary(times.with.counts), p50Ratio: ratio('counts') },
      },
      aims: [
        {
          aim: 'no report is refused, and each ban is acknowledged within 1 s at p99',
          reached: percentile(times.with.ban, 99) <= 1_000,
        },
      ],
    };
  } finally {
    honest?.stop();
    await stack.stop();
  }
}

class Honest {
  readonly #connections: Connection[];
  readonly #siteId: string;
  #round = 0;

  constructor(stack: ConsoleStack, identities: readonly Identity[], siteId: string) {
    this.#connections = identities.map((each) => new Connection(stack.facts.nodeApiUrl, each.authorityPem, each));
    this.#siteId = siteId;
  }

  async beat(): Promise<void> {
    await this.#each((connection) =>
      connection.call('heartbeat', { info: { features: [...ALL_FEATURES] }, dataPlaneHealthy: true }),
    );
  }

  /** One ban and the counts of a minute of each node; adds the milliseconds until they were acknowledged. A refusal throws. */
  async report(times: { ban: number[]; counts: number[] }): Promise<void> {
    const round = ++this.#round;
    const minute = BigInt(Math.floor(Date.now() / 60_000) * 60);
    await this.#each(async (connection, index) => {
      const begun = performance.now();
      const bans = [reportedBan(this.#siteId, `45.${index}.1.${round}/32`)];
      await whileBusy(() => connection.call('reportBans', { bans }));
      times.ban.push(performance.now() - begun);
    });
    await Promise.all(
      this.#connections.map(async (connection) => {
        const begun = performance.now();
        const minutes = [{ siteId: this.#siteId, minute, requests: 10n }];
        await whileBusy(() => connection.call('reportStats', { sequence: BigInt(round), minutes }));
        times.counts.push(performance.now() - begun);
      }),
    );
  }

  stop(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  async #each(work: (connection: Connection, index: number) => Promise<unknown>): Promise<void> {
    await inParallel(this.#connections.length, AT_ONCE, (index) => work(this.#connections[index]!, index));
  }
}
