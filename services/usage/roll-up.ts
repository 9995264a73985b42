// What is done to usage each minute, by one process of all.
import { moveCompleteUntil, recomputeUsage, takeAllUsageMarks } from '../../models/usage/usage-windows.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** An hour. */
const WINDOWS_AT_ONCE = 12;
/** A hundred days, an hour at a time. */
const MOST_TURNS = 2_400;

/** Recomputes closed windows with new data, then says how far usage is complete. `signal` ends it early. */
export async function rollUpUsage({ pools }: Pick<Runtime, 'pools'>, signal?: AbortSignal): Promise<void> {
  const sql = pools.api;
  await takeAllUsageMarks(sql, signal);
  await recomputeAll((windows) => recomputeUsage(sql, windows), signal);
  if (!signal?.aborted) await moveCompleteUntil(sql);
}

/**
 * Calls until there is no more to do, with half of the windows after each call that took too long: what is large must
 * not hold everything back for good. Throws what fails otherwise, and for one window.
 */
export async function recomputeAll(
  recompute: (windows: number) => Promise<boolean>,
  signal?: AbortSignal,
): Promise<void> {
  let windows = WINDOWS_AT_ONCE;
  for (let turn = 0; turn < MOST_TURNS && !signal?.aborted; turn++) {
    try {
      if (!(await recompute(windows))) return;
    } catch (error) {
      if (!isCanceled(error) || windows === 1) throw error;
      windows = Math.floor(windows / 2);
    }
  }
}

/** Whether a statement took longer than it may. */
export function isCanceled(error: unknown): boolean {
  return (error as { code?: string }).code === '57014';
}
