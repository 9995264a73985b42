// What a call searches for, checked; and what becomes of a search that takes too long.
import { fail } from '../../contract/errors.ts';
import type { logTail, TailFilter } from '../../contract/resources/log-tail.ts';
import { LOG_AHEAD_MS } from '../../contract/resources/logs.ts';
import { parseAddress, parseCidr } from '../../contract/scalars/cidr.ts';
import type { StreamInput } from '../../contract/stream.ts';
import { DAY_MS, dayOf } from '../../models/db/partitions.ts';
import {
  type LogFilterFields,
  type LogReader,
  type LogSearch,
  LogSearchTooLarge,
} from '../../models/logs/log-reader.ts';
import { readLogSettings } from '../../models/logs/log-setting.ts';
import { PostgresLogReader } from '../../models/logs/postgres-log-reader.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export interface LogSearchInput extends LogFilterFields {
  id: string;
  from: string;
  to: string;
}

/** Where this installation keeps its rows. */
export function logReader({ pools }: Pick<Runtime, 'pools'>): LogReader {
  return new PostgresLogReader(pools.api);
}

/** Throws SITE_NOT_FOUND, LOG_RANGE_INVALID and LOG_FILTER_INVALID. */
export async function readSearch({ pools }: Pick<Runtime, 'pools'>, input: LogSearchInput): Promise<LogSearch> {
  const { id: siteId, from: first, to: last, ...rest } = input;
  // Rows of a deleted site are still there for a while, and nobody's.
  if ((await clusterOfSite(pools.api, siteId)) === undefined) fail('SITE_NOT_FOUND');
  const [from, to] = [Date.parse(first), Date.parse(last)];
  const now = Date.now();
  const { retentionDays } = await readLogSettings(pools.api);
  const earliest = dayOf(now) - (retentionDays - 1) * DAY_MS;
  if (!(from < to) || from < earliest || to > now + LOG_AHEAD_MS) {
    fail('LOG_RANGE_INVALID', { earliest: new Date(earliest).toISOString() });
  }
  return { siteId, from, to, filter: readFilter(rest) };
}

/** What a tail looks for, checked. Throws SITE_NOT_FOUND and LOG_FILTER_INVALID. */
export async function readTailSearch(
  { pools }: Pick<Runtime, 'pools'>,
  { id: siteId, ...rest }: StreamInput<typeof logTail.tail>,
): Promise<{ siteId: string; clusterId: string; filter: TailFilter }> {
  const clusterId = (await clusterOfSite(pools.api, siteId)) ?? fail('SITE_NOT_FOUND');
  return { siteId, clusterId, filter: readFilter(rest) as TailFilter };
}

const FIELDS = [
  ...(['status', 'statusClass', 'ip', 'cidr', 'method', 'host', 'path', 'requestId', 'cacheStatus'] as const),
  ...(['blockReason', 'country', 'asn', 'ua', 'referer', 'minDuration', 'ja4'] as const),
];

function readFilter(input: LogFilterFields): LogFilterFields {
  if (input.ip !== undefined && !parseAddress(input.ip)) fail('LOG_FILTER_INVALID', { name: 'ip' });
  if (input.cidr !== undefined && !parseCidr(input.cidr)) fail('LOG_FILTER_INVALID', { name: 'cidr' });
  return Object.fromEntries(FIELDS.flatMap((name) => (input[name] === undefined ? [] : [[name, input[name]]])));
}

/** Throws LOG_QUERY_TOO_LARGE where the search does. */
export async function withinBudget<T>(search: Promise<T>): Promise<T> {
  try {
    return await search;
  } catch (error) {
    if (error instanceof LogSearchTooLarge) fail('LOG_QUERY_TOO_LARGE', { seconds: error.seconds });
    throw error;
  }
}
