import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type UsageRecord, type usage, WINDOW_MS } from '../../contract/resources/usage.ts';
import { type UsagePlace, type UsageRow, usageAfter, usageInRange } from '../../models/usage/usage-record.ts';
import type { UsageSpan } from '../../models/usage/usage-view.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { isoOf, usageRange } from './range.ts';

const DEFAULT_LIMIT = 1000;

/** Throws USAGE_RANGE_INVALID, and USAGE_CURSOR_INVALID for a cursor of another range or site, too. */
export async function listUsage(
  { pools }: Runtime,
  input: Input<typeof usage.list>,
): Promise<Output<typeof usage.list>> {
  const { siteId = null, limit = DEFAULT_LIMIT } = input;
  const { from, to } = usageRange(input);
  const after = input.cursor === undefined ? null : placeIn(input.cursor, { from, to }, siteId);
  // One more tells whether there is another page.
  const { rows, completeUntil } = await usageInRange(
    pools.api,
    { from: new Date(from), to: new Date(to), siteId, after },
    limit + 1,
  );
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

function placeIn(cursor: string, { from, to }: UsageSpan, siteId: string | null): UsagePlace {
  const place = readCursor(cursor) ?? fail('USAGE_CURSOR_INVALID');
  const inside = place.windowStart >= from && place.windowStart < to && (siteId === null || siteId === place.siteId);
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
