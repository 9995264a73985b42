// What is done to usage each minute, by one process of all.
import { moveCompleteUntil, recomputeUsage, takeAllUsageMarks } from '../../models/usage-windows.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** A hundred days, four hours at a time. */
const MOST_TURNS = 600;

/** Recomputes closed windows with new data, then says how far usage is complete. `signal` ends it early. */
export async function rollUpUsage({ pools }: Pick<Runtime, 'pools'>, signal?: AbortSignal): Promise<void> {
  const sql = pools.api;
  await takeAllUsageMarks(sql, signal);
  for (let turn = 0; turn < MOST_TURNS && !signal?.aborted; turn++) if (!(await recomputeUsage(sql))) break;
  if (!signal?.aborted) await moveCompleteUntil(sql);
}
