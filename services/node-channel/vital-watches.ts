// What is watched, as this process knows it: read at most every 1.5 seconds for all clusters at once, and when a node
// says that it runs a revision that nobody has named here, for its publication may have brought a watch.
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { readWatches, type WatchNow } from '../../models/vital-watch.ts';

const FRESH_MS = 1_500;

interface Known extends WatchNow {
  /** Milliseconds of this process's clock. */
  endsAt: number;
}

export class VitalWatches {
  readonly #pool: Pick<Pool, 'query'>;
  readonly #log: Pick<Logger, 'warn'>;
  #known = new Map<string, Known>();
  #freshUntil = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;
  /** The latest revision that a node of the cluster said it runs. */
  readonly #named = new Map<string, bigint>();

  constructor(pool: Pick<Pool, 'query'>, log: Pick<Logger, 'warn'>) {
    this.#pool = pool;
    this.#log = log;
  }

  /** What is watched of the cluster of a node that runs this revision; null: nothing. Never throws. */
  async of(clusterId: string, revision: bigint): Promise<WatchNow | null> {
    if (revision > (this.#named.get(clusterId) ?? -1n)) {
      this.#named.set(clusterId, revision);
      // What is being read may have been read before.
      await this.#reading;
      this.#freshUntil = Number.NEGATIVE_INFINITY;
    }
    if (performance.now() >= this.#freshUntil) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = null;
      });
    }
    // Others are on their way to the same answer.
    await this.#reading;
    const known = this.#known.get(clusterId);
    const seconds = known ? Math.ceil((known.endsAt - performance.now()) / 1000) : 0;
    return known && seconds > 0 ? { siteIds: known.siteIds, head: known.head, seconds } : null;
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
    this.#freshUntil = performance.now() + FRESH_MS;
  }
}
