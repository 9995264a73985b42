// Waits between tries, within a budget of the whole call.
import { setTimeout as sleep } from 'node:timers/promises';
import { AdapterError } from '../adapter.ts';

const TRIES = 3;
const FIRST_PAUSE_MS = 250;
/** Assumed where a provider limits the rate and does not say for how long. */
const UNKNOWN_RETRY_SECONDS = 2;
/** For everything of a call: requests, pauses, reading back. */
export const CALL_MS = 110_000;

export interface Budget {
  /** Milliseconds since 1970. */
  until: number;
  signal: AbortSignal;
}

export function budgetOf(signal: AbortSignal | undefined): Budget {
  const deadline = AbortSignal.timeout(CALL_MS);
  return {
    until: Date.now() + CALL_MS,
    signal: signal ? AbortSignal.any([deadline, signal]) : deadline,
  };
}

/** Waits before the next try; false: there is none, because of the error, the number of tries or the budget. */
export async function mayRetry(error: AdapterError, tries: number, { until, signal }: Budget): Promise<boolean> {
  if (signal.aborted) return false;
  const isLimited = error.kind === 'rate_limited';
  const mayPass = error.changed || error.kind === 'unavailable' || error.kind === 'timeout';
  if (!isLimited && (tries >= TRIES || !mayPass)) return false;
  const waitMs = isLimited
    ? (error.retryAfter ?? UNKNOWN_RETRY_SECONDS * tries) * 1000
    : FIRST_PAUSE_MS * 2 ** (tries - 1);
  if (Date.now() + waitMs > until) return false;
  return sleep(waitMs, true, { signal }).catch(() => false);
}

/** Repeats a read while that may help. Throws {@link AdapterError}. */
export async function reading<T>(budget: Budget, read: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof AdapterError) || !(await mayRetry(error, tries, budget))) throw error;
    }
  }
}
