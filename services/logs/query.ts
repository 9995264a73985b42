// Logged requests of a site: rows, counts over time, and the most frequent values.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { LogEntry, logs } from '../../contract/resources/logs.ts';
import { entryOf } from '../../models/logs/log-entry.ts';
import { nodeNames } from '../../models/logs/log-nodes.ts';
import type { LogRow } from '../../models/logs/log-row.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { logReader, readSearch, withinBudget } from './search.ts';

const DEFAULT_LIMIT = 100;
const DEFAULT_TOP = 10;
const MOST_POINTS = 120;
const BUCKET_SECONDS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400];

/** Throws the contract's errors. */
export async function queryLogs(
  runtime: Pick<Runtime, 'pools'>,
  input: Input<typeof logs.query>,
): Promise<Output<typeof logs.query>> {
  const { cursor, limit = DEFAULT_LIMIT } = input;
  const search = await readSearch(runtime, input);
  const after = cursor === undefined ? null : (readCursor(cursor) ?? fail('LOG_CURSOR_INVALID'));
  const reader = logReader(runtime);
  const [rows, missingRows] = await Promise.all([
    withinBudget(reader.page(search, after, limit + 1)),
    reader.missing(search),
  ]);
  const page = rows.slice(0, limit);
  const truncated = rows.length > limit;
  return {
    entries: await present(runtime, page),
    truncated,
    nextCursor: truncated ? writeCursor(page.at(-1)!) : null,
    missingRows,
  };
}

/** Throws the contract's errors. */
export async function logHistogram(
  runtime: Pick<Runtime, 'pools'>,
  input: Input<typeof logs.histogram>,
): Promise<Output<typeof logs.histogram>> {
  const search = await readSearch(runtime, input);
  const { from, to } = search;
  const bucketSeconds = BUCKET_SECONDS.find((each) => (to - from) / (each * 1000) <= MOST_POINTS - 1)!;
  const ms = bucketSeconds * 1000;
  const found = await withinBudget(logReader(runtime).histogram(search, ms));
  const byStart = new Map(found.map((bucket) => [bucket.start, bucket]));
  const points = [];
  for (let start = Math.floor(from / ms) * ms; start < to; start += ms) {
    const { rows = 0, requests = 0, clientErrors = 0, serverErrors = 0, blocked = 0 } = byStart.get(start) ?? {};
    points.push({ start: new Date(start).toISOString(), rows, requests, clientErrors, serverErrors, blocked });
  }
  return { bucketSeconds, estimated: found.some(({ sampled }) => sampled), points };
}

/** Throws the contract's errors. */
export async function topLogs(
  runtime: Pick<Runtime, 'pools'>,
  input: Input<typeof logs.top>,
): Promise<Output<typeof logs.top>> {
  const search = await readSearch(runtime, input);
  const found = await withinBudget(logReader(runtime).top(search, input.field, input.limit ?? DEFAULT_TOP));
  return {
    estimated: found.some(({ sampled }) => sampled),
    items: found.map(({ value, rows, requests }) => ({ value, rows, requests })),
  };
}

/** Rows as the API has them. */
export async function present({ pools }: Pick<Runtime, 'pools'>, rows: readonly LogRow[]): Promise<LogEntry[]> {
  const names = await nodeNames(pools.api, [...new Set(rows.map(({ nodeId }) => nodeId))]);
  return rows.map((row) => entryOf(row, names.get(row.nodeId) ?? null));
}
