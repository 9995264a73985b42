import { setTimeout as delay } from 'node:timers/promises';

export interface EventuallyOptions {
  /** Long enough for the slowest machine: it bounds a hang, it does not measure. Default 60,000. */
  timeoutMs?: number;
  everyMs?: number;
  what?: string;
}

/**
 * Repeats `probe` until it answers something other than undefined or false without throwing, and returns that. Throws
 * with the last answer when the time is over.
 */
export async function eventually<T>(
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: EventuallyOptions = {},
): Promise<T> {
  const { timeoutMs = 60_000, everyMs = 20, what = 'the condition' } = options;
  const deadline = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`${what} did not come true in ${timeoutMs} ms; last: ${String(last)}`, { cause: last });
    await delay(everyMs);
  }
}
