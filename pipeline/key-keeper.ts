// Keeps keys that the nodes of each cluster share: makes what is missing, rotates what is old.
import { keepCluster } from '../models/clusters/cluster.ts';
import type { ClusterKeys } from '../models/clusters/cluster-keys.ts';
import { systemCall } from '../runtime/call.ts';
import type { LeaderJob } from '../runtime/leader.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Tx, write } from '../runtime/write.ts';

/** Nodes report every 15 s: within this time after a step of the clock every one that is online has been heard. */
const SETTLED_MS = 60_000;
/** Looks further apart than this tell nothing of the time between them: the database was away, or the process slept. */
const MAX_GAP_MS = 90_000;
/** The wall clock against the monotonic one: more is a step, less is a correction. */
const MAX_DRIFT_MS = 10_000;

/** The two clocks a rotation looks at. */
export interface Clocks {
  now(): Date;
  /** Milliseconds that no step of the clock and no pause of the machine moves. */
  monotonic(): number;
}

const REAL_CLOCKS: Clocks = { now: () => new Date(), monotonic: () => performance.now() };

/** What is kept, and what else happens in the transaction of a rotation. */
export interface KeptKeys {
  /** In logs. */
  name: string;
  keys: ClusterKeys;
  rotated?(tx: Tx, clusterId: string): Promise<void>;
}

export class KeyKeeper {
  readonly #kept: KeptKeys;
  readonly #clocks: Clocks;
  /** Since when a cluster is due, by the monotonic clock. */
  readonly #dueSince = new Map<string, number>();
  #looked = { wall: 0, monotonic: Number.NEGATIVE_INFINITY };

  constructor(kept: KeptKeys, clocks: Clocks = REAL_CLOCKS) {
    this.#kept = kept;
    this.#clocks = clocks;
  }

  async run(runtime: Runtime, signal: AbortSignal): Promise<void> {
    const { name, keys, rotated } = this.#kept;
    const now = this.#clocks.now();
    for (const clusterId of await keys.missing(runtime.pools.api)) {
      if (signal.aborted) return;
      await this.#attempt(runtime, clusterId, (tx) => keys.create(tx.sql, runtime.sealer, clusterId, now));
    }
    for (const clusterId of this.#settled(await keys.due(runtime.pools.api, now), now)) {
      if (signal.aborted) return;
      await this.#attempt(runtime, clusterId, async (tx) => {
        if (!(await keepCluster(tx.sql, clusterId))) return;
        if (!(await keys.rotateDue(tx.sql, runtime.sealer, clusterId, now))) return;
        await rotated?.(tx, clusterId);
        runtime.log.info({ clusterId, keys: name }, 'keys rotated');
      });
    }
  }

  /** Those seen due for a while: after a step of the clock, or a failure, every node looks like one that is offline. */
  #settled(due: readonly string[], now: Date): string[] {
    const monotonic = this.#clocks.monotonic();
    const passed = monotonic - this.#looked.monotonic;
    const stepped = Math.abs(now.getTime() - this.#looked.wall - passed) > MAX_DRIFT_MS;
    if (passed > MAX_GAP_MS || stepped) this.#dueSince.clear();
    this.#looked = { wall: now.getTime(), monotonic };
    for (const clusterId of this.#dueSince.keys()) if (!due.includes(clusterId)) this.#dueSince.delete(clusterId);
    for (const clusterId of due) if (!this.#dueSince.has(clusterId)) this.#dueSince.set(clusterId, monotonic);
    return due.filter((clusterId) => monotonic - this.#dueSince.get(clusterId)! >= SETTLED_MS);
  }

  async #attempt(runtime: Runtime, clusterId: string, work: Parameters<typeof write<void>>[3]): Promise<void> {
    const { name } = this.#kept;
    await write(runtime, systemCall(name), { clusterId }, work).catch((err: unknown) =>
      runtime.log.warn({ err, clusterId, keys: name }, 'key rotation failed, will be retried'),
    );
  }
}

/** A job that keeps them, with a memory of its own in each runtime. */
export function keeping(kept: KeptKeys, everyMs: number): LeaderJob {
  const keepers = new WeakMap<Runtime, KeyKeeper>();
  return {
    name: kept.name,
    everyMs,
    async run(runtime, signal) {
      const keeper = keepers.get(runtime) ?? new KeyKeeper(kept);
      keepers.set(runtime, keeper);
      await keeper.run(runtime, signal);
    },
  };
}
