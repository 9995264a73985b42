// The optimistic lock of resources with `updatedAt`: milliseconds, and every change moves it.
import { fail } from '../contract/errors.ts';

/** Throws UPDATED_AT_MISMATCH when the caller saw another version; no expectation always passes. */
export function assertUpdatedAt(expected: string | undefined, current: Date): void {
  if (expected === undefined || Date.parse(expected) === current.getTime()) return;
  fail('UPDATED_AT_MISMATCH', { updatedAt: current.toISOString() });
}

/** The time of this change: now, but later than the previous change even within one millisecond. */
export function nextUpdatedAt(previous: Date, now: Date): Date {
  return new Date(Math.max(now.getTime(), previous.getTime() + 1));
}
