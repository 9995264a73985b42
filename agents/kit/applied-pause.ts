/** Shortest pause, in which what is applied at nearly the same time becomes one report. */
const BATCH_MS = 50;
/** A console that asks for more than this is mistaken. */
const LONGEST_SPREAD_MS = 10_000;

/**
 * How long a node waits before it reports what it applied, in milliseconds. `spreadMs` is what the console named in its
 * last heartbeat answer: a thousand nodes that get the same push then answer one after the other.
 */
export function appliedPause(spreadMs: number, random: () => number = Math.random): number {
  return BATCH_MS + random() * Math.min(spreadMs, LONGEST_SPREAD_MS);
}
