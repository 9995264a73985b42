// What is done to statistics, by one process of all.
import { makeTrafficDays } from '../../models/traffic/traffic-age.ts';
import { dirtyWindows, endWindow, sumWindow } from '../../models/traffic/traffic-window.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const WINDOWS_AT_ONCE = 12;
/** A week of windows. */
const MOST_TURNS = 168;
const MOST_PARTS = 256;
/** PostgreSQL: a statement took longer than it may. */
const CANCELED = '57014';

/** Sums sites of closed windows with new counts. `signal` ends it early. */
export async function sumTraffic({ pools }: Pick<Runtime, 'pools'>, signal?: AbortSignal): Promise<void> {
  const sql = pools.api;
  await makeTrafficDays(sql, new Date());
  let parts = 1;
  for (let turn = 0; turn < MOST_TURNS && !signal?.aborted; turn++) {
    const windows = await dirtyWindows(sql, WINDOWS_AT_ONCE);
    for (const window of windows) {
      if (signal?.aborted) return;
      // Windows beside each other are of a size.
      parts = await inParts((part, of) => sumWindow(sql, window.start, { part, of }), parts);
      await endWindow(sql, window);
    }
    if (windows.length < WINDOWS_AT_ONCE) return;
  }
}

/** Does something for all sites in so many parts, and in more and smaller ones while that takes too long. */
async function inParts(act: (part: number, of: number) => Promise<void>, parts: number): Promise<number> {
  let of = parts;
  for (let part = 0; part < of; part++) {
    try {
      await act(part, of);
    } catch (error) {
      if ((error as { code?: string }).code !== CANCELED || of >= MOST_PARTS) throw error;
      // Parts that were summed have nothing left that differs.
      of *= 2;
      part = -1;
    }
  }
  return of;
}
