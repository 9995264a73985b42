import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type UsageRecord, type usage, WINDOW_MS } from '../../contract/resources/usage.ts';
import { type UsagePlace, type UsageRow, usageAfter, usageInRange } from '../../models/usage-record.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readCursor, writeCursor } from './cursor.ts';

const DEFAULT_LIMIT = 1000;

/** Throws USAGE_RANGE_INVALID, and USAGE_CURSOR_INVALID for a cursor of another range or site, too. */
export async function listUsage(
  { pools }: Runtime,
  input: Input<typeof usage.list>,
): Promise<Output<typeof usage.list>> {
  const { siteId = null, limit = DEFAULT_LIMIT } = input;
  const [from, to] = [new Date(input.from), new Date(input.to)];
  if (!isAligned(from) || !isAligned(to) || to <= from) fail('USAGE_RANGE_INVALID');
  const after = input.cursor === undefined ? null : placeIn(input.cursor, from, to, siteId);
  // One more tells whether there is another page.
  const { rows, completeUntil } = await usageInRange(pools.api, { from, to, siteId, after }, limit + 1);
  const page = rows.slice(0, limit);
  return {
    items: page.map(presentRecord),
    nextCursor: rows.length > limit ? writeCursor(page.at(-1)!) : null,
    completeUntil: isoOf(completeUntil),
  };
}

export async function listUsageChanges(
  { pools }: Runtime,
  { afterSeq = '0', limit = DEFAULT_LIMIT }: Input<typeof usage.changes>,
): Promise<Output<typeof usage.changes>> {
  const { rows, completeUntil } = await usageAfter(pools.api, afterSeq, limit);
  return {
    items: rows.map(presentRecord),
    lastSeq: rows.at(-1)?.seq ?? afterSeq,
    completeUntil: isoOf(completeUntil),
  };
}

function isoOf<T extends number | null>(time: T): T extends number ? string : null;
function isoOf(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

function isAligned(time: Date): boolean {
  return time.getTime() % WINDOW_MS === 0;
}

function placeIn(cursor: string, from: Date, to: Date, siteId: string | null): UsagePlace {
  const place = readCursor(cursor) ?? fail('USAGE_CURSOR_INVALID');
  const inside =
    place.windowStart >= from.getTime() &&
    place.windowStart < to.getTime() &&
    (siteId === null || siteId === place.siteId);
  return inside ? place : fail('USAGE_CURSOR_INVALID');
}

function presentRecord({ windowStart, updatedAt, ...row }: UsageRow): UsageRecord {
  return {
    id: `${row.siteId}.${windowStart / 1000}`,
    siteId: row.siteId,
    windowStart: isoOf(windowStart),
    windowEnd: isoOf(windowStart + WINDOW_MS),
    requests: row.requests,
    bytesSent: row.bytesSent,
    bytesReceived: row.bytesReceived,
    revision: row.revision,
    seq: row.seq,
    updatedAt: isoOf(updatedAt),
  };
}
