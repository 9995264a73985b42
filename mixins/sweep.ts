// Jobs that delete what is old in batches.
import { SWEEP_BATCH } from '../models/db/sweeps.ts';
import type { LeaderJob } from '../runtime/leader.ts';
import type { Runtime } from '../runtime/runtime.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;

/** Two million rows: more than the console can take in, in the time between two runs of a sweep. */
const MAX_BATCHES = 1000;

/** A job that runs a batch until it deletes fewer rows than it may. */
export function sweep(
  name: string,
  everyMs: number,
  batch: (sql: Runtime['pools']['api']) => Promise<number>,
): LeaderJob {
  return {
    name,
    everyMs,
    async run({ pools }, signal) {
      for (let count = 0; count < MAX_BATCHES && !signal.aborted; count++) {
        if ((await batch(pools.api)) < SWEEP_BATCH) return;
      }
    },
  };
}
