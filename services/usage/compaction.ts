// Minutes are kept as they came for a day; older ones by windows of five minutes, which is all that records are made of.
// A thousand nodes with the same thousand sites append some 80 million rows a day.
import { WINDOW_MS } from '../../contract/resources/usage.ts';
import { compactWindow, firstUncompacted, type SitePart } from '../../models/usage/usage-compaction.ts';
import { makeUsagePartitions } from '../../models/usage/usage-partitions.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isCanceled } from './roll-up.ts';

const KEPT_MS = 86_400_000;
/** A hundred days, after a console that was never idle. */
const MOST_WINDOWS = 28_800;
const MOST_PARTS = 256;

/** Compacts what is older than a day. `signal` ends it between two transactions. */
export async function compactUsage({ pools }: Pick<Runtime, 'pools'>, signal?: AbortSignal): Promise<void> {
  const now = new Date();
  await makeUsagePartitions(pools.api, now);
  await compactBefore({ pools }, new Date(Math.floor((now.getTime() - KEPT_MS) / WINDOW_MS) * WINDOW_MS), signal);
}

/** Compacts the windows before a time, which is the start of one. */
export async function compactBefore(
  { pools }: Pick<Runtime, 'pools'>,
  before: Date,
  signal?: AbortSignal,
): Promise<void> {
  const sql = pools.api;
  let from = new Date(0);
  let parts = 1;
  for (let turn = 0; turn < MOST_WINDOWS && !signal?.aborted; turn++) {
    const start = await firstUncompacted(sql, from, before);
    if (!start) return;
    // Windows beside each other are of a size.
    parts = await inParts((part) => compactWindow(sql, start, part), parts, signal);
    from = new Date(start.getTime() + WINDOW_MS);
  }
}

/**
 * Does something for all sites in so many parts, and in more and smaller ones while that takes too long: what is large must not hold
 * everything back for good. Answers how many parts it took. Throws what fails otherwise, and for the smallest part.
 */
export async function inParts(
  act: (part: SitePart) => Promise<void>,
  parts: number,
  signal?: AbortSignal,
): Promise<number> {
  let of = parts;
  for (let part = 0; part < of && !signal?.aborted; part++) {
    try {
      await act({ part, of });
    } catch (error) {
      if (!isCanceled(error) || of >= MOST_PARTS) throw error;
      // Parts that were done have nothing left.
      of *= 2;
      part = -1;
    }
  }
  return of;
}
