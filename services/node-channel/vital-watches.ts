// What is watched, as this process knows it: read at most every 1.5 seconds for all clusters at once, and when a cluster has
// a revision that nobody asked with before, for its publication may have brought a watch.
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { readWatches, type WatchNow } from '../../models/rollouts/vital-watch.ts';

const FRESH_MS = 1_500;
/** Heartbeats go on without an answer of the database. */
const LONGEST_MS = 2_000;

interface Known extends WatchNow {
  /** Milliseconds of this process's clock. */
  endsAt: number;
}

export class VitalWatches {
  readonly #pool: Pick<Pool, 'query'>;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #longestMs: number;
  #known = new Map<string, Known>();
  #freshUntil = Number.NEGATIVE_INFINITY;
  /** The read under way, or as long as is waited for it. */
  #reading: Promise<void> | null = null;
  /** The revision of each cluster that was asked with. */
  readonly #heads = new Map<string, bigint>();

  constructor(pool: Pick<Pool, 'query'>, log: Pick<Logger, 'warn'>, longestMs = LONGEST_MS) {
    this.#pool = pool;
    this.#log = log;
    this.#longestMs = longestMs;
  }

  /** What is watched of a cluster whose latest revision is `head`, as far as is known; null: nothing. Never throws. */
  async of(clusterId: string, head: bigint): Promise<WatchNow | null> {
    if (head !== this.#heads.get(clusterId)) {
      this.#heads.set(clusterId, head);
      // What is being read may have been read before.
      await this.#reading;
      this.#freshUntil = Number.NEGATIVE_INFINITY;
    }
    if (performance.now() >= this.#freshUntil) this.#reading ??= this.#startReading();
    // Others are on their way to the same answer.
    await this.#reading;
    const known = this.#known.get(clusterId);
    const seconds = known ? Math.ceil((known.endsAt - performance.now()) / 1000) : 0;
    return known && seconds > 0 ? { siteIds: known.siteIds, head: known.head, seconds } : null;
  }

  async #startReading(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#longestMs);
    await Promise.race([this.#read(), late]);
    clearTimeout(timer);
    this.#freshUntil = performance.now() + FRESH_MS;
    this.#reading = null;
  }

  async #read(): Promise<void> {
    try {
      const watches = await readWatches(this.#pool);
      const now = performance.now();
      this.#known = new Map(
        [...watches].map(([clusterId, watch]) => [clusterId, { ...watch, endsAt: now + watch.seconds * 1000 }]),
      );
    } catch (err) {
      // What was known ends by itself.
      this.#log.warn({ err }, 'watched sites not read');
    }
  }
}
