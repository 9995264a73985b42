// Waiting that ends early when it should: jittered back-off between 1 s and 30 s, and sleeps bound to an abort signal; work
// that is tried until it succeeds.

/** Delay before try number `attempt` (0 = first retry) in ms: 1 s doubling to 30 s, half of it random. */
export function backoffDelay(
  attempt: number,
  random: () => number = Math.random,
  minMs = 1000,
  maxMs = 30_000,
): number {
  const full = Math.min(maxMs, minMs * 2 ** Math.min(attempt, 20));
  return Math.round(full / 2 + (full / 2) * random());
}

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

export interface Trying {
  signal: AbortSignal;
  /** Told of each failure before the wait. */
  failed: (error: unknown, retryInMs: number) => void;
  /** Delay after a number of failures in a row, ms. */
  delay: (failures: number) => number;
}

/** Calls `work` until it succeeds and returns what it gave; undefined when the signal aborts first. Never rejects. */
export async function untilItWorks<T>(
  work: () => Promise<T>,
  { signal, failed, delay }: Trying,
): Promise<T | undefined> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return await work();
    } catch (error) {
      const retryInMs = delay(failures);
      failed(error, retryInMs);
      await sleep(retryInMs, signal);
    }
  }
  return undefined;
}
