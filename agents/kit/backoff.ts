// Waiting that ends early when it should: jittered back-off between 1 s and 30 s, and sleeps bound to an abort signal.

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
