// Work that must not hold up what is waited for: in small steps, with a rest after each that is longer than the step took.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';

/** Of the time that steps take: what is left for others is two thirds of it. */
const REST = 2;

/** Rests after work that took so many milliseconds without a break. */
export async function restAfter(ms: number): Promise<void> {
  // A timer is no shorter than a millisecond.
  if (ms * REST < 1) await setImmediate();
  else await sleep(ms * REST);
}
