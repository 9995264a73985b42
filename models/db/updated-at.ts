// The optimistic lock of resources with `updatedAt`: milliseconds, and every change moves it.
import { fail } from '../../contract/errors.ts';

/**
 * Throws UPDATED_AT_MISMATCH when the caller saw another version; no expectation always passes. Null is the version of
 * what nobody has saved yet.
 */
export function assertUpdatedAt(expected: string | null | undefined, current: Date | null): void {
  if (expected === undefined) return;
  if (expected === null ? current === null : Date.parse(expected) === current?.getTime()) return;
  fail('UPDATED_AT_MISMATCH', { updatedAt: current?.toISOString() ?? null });
}

/** The time of this change: now, but later than the previous change even within one millisecond. */
export function nextUpdatedAt(previous: Date | null, now: Date): Date {
  return new Date(Math.max(now.getTime(), (previous?.getTime() ?? 0) + 1));
}
