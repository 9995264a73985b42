// Counts that a simulated node kept while it was away, delivered as an agent delivers them: over a connection of its own, a
// batch at a time, with a pause as long as the batch took.
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { cutBatches } from '../../agents/edge/stats/batch-file.ts';
import { LATENCY_BOUNDS_MS } from '../../contract/latency-buckets.ts';
import { ReportStatsRequestSchema, SiteMinuteSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import { Connection, type Identity } from './connection.ts';

/** As the agent's. */
const MAX_PAUSE_MS = 1000;
const RETRY_MS = 200;

/** Batches without their numbers: counts of these sites in each of so many minutes, which end some minutes ago. */
export function backlogCounts(siteIds: readonly string[], minutes: number): Uint8Array[] {
  const until = Math.floor(Date.now() / 60_000) * 60 - 600;
  const latency = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, bucket) => BigInt(bucket % 7));
  const statuses = [
    { code: 200, count: 50n },
    { code: 304, count: 8n },
    { code: 404, count: 2n },
  ];
  const rows = Array.from({ length: minutes }, (_, index) =>
    siteIds.map((siteId) =>
      create(SiteMinuteSchema, {
        siteId,
        minute: BigInt(until - 60 * (minutes - index)),
        requests: 60n,
        bytesSent: 1_000_000n,
        bytesReceived: 30_000n,
        statuses,
        latency,
      }),
    ),
  ).flat();
  return cutBatches(rows, []).map((batch) =>
    toBinary(ReportStatsRequestSchema, create(ReportStatsRequestSchema, { minutes: batch.minutes })),
  );
}

export class Backlog {
  /** Batches that the console has. */
  stored = 0;
  readonly #serverUrl: string;
  readonly #identity: Identity;
  readonly #counts: readonly Uint8Array[];
  #running: AbortController | undefined;

  constructor(serverUrl: string, identity: Identity, counts: readonly Uint8Array[]) {
    this.#serverUrl = serverUrl;
    this.#identity = identity;
    this.#counts = counts;
  }

  get left(): number {
    return this.#counts.length - this.stored;
  }

  /** Goes on delivering, until it is paused or nothing is left. */
  resume(): void {
    if (this.#running) return;
    this.#running = new AbortController();
    void this.#deliver(this.#running.signal);
  }

  /** What is under way is sent again when it goes on. */
  pause(): void {
    this.#running?.abort();
    this.#running = undefined;
  }

  async #deliver(signal: AbortSignal): Promise<void> {
    const { authorityPem } = this.#identity;
    while (!signal.aborted && this.left > 0) {
      const connection = new Connection(this.#serverUrl, authorityPem, this.#identity);
      signal.addEventListener('abort', () => connection.destroy(), { once: true });
      try {
        while (!signal.aborted && this.left > 0) {
          const begun = performance.now();
          const { acknowledged } = await connection.callEncoded('reportStats', this.#next());
          this.stored = Number(acknowledged);
          await sleep(Math.min(MAX_PAUSE_MS, performance.now() - begun), undefined, { signal });
        }
      } catch {
        // Paused, or the console was away.
        await sleep(RETRY_MS);
      } finally {
        connection.destroy();
      }
    }
  }

  /** One message: parts of one add up. */
  #next(): Uint8Array {
    const sequence = BigInt(this.stored + 1);
    const number = create(ReportStatsRequestSchema, { sequence, firstHeld: sequence });
    return Buffer.concat([toBinary(ReportStatsRequestSchema, number), this.#counts[this.stored]!]);
  }
}
