// Rows as lines of a file.
import type { LogEntry } from '../../contract/resources/logs.ts';
import { csvLine, textCell } from '../../mixins/csv.ts';

/** Columns of CSV in their order. */
const COLUMNS: readonly (keyof LogEntry)[] = [
  ...(['time', 'nodeId', 'nodeName', 'siteId', 'clientIp', 'method', 'host', 'path', 'status', 'bytesSent'] as const),
  ...([
    'requestBytes',
    'durationMs',
    'cacheStatus',
    'sampleRate',
    'requestId',
    'ja4',
    'wafRuleIds',
    'wafBlocked',
  ] as const),
  ...(['userAgent', 'referer', 'ruleIds', 'peerIp', 'httpVersion', 'scheme', 'country', 'asn', 'asName'] as const),
  ...([
    'upstreamAddr',
    'upstreamStatus',
    'upstreamMs',
    'contentType',
    'tlsVersion',
    'blockReason',
    'blockRuleId',
  ] as const),
  ...(['query', 'headers', 'errorCode', 'id'] as const),
];

export const CSV_HEAD = csvLine(COLUMNS);

export function csvOf(entry: LogEntry): string {
  return csvLine(COLUMNS.map((column) => cellOf(entry[column])));
}

function cellOf(value: LogEntry[keyof LogEntry]): string | number {
  if (value === null) return '';
  if (typeof value === 'number') return value;
  if (!Array.isArray(value)) return textCell(String(value));
  const isHeaders = value.some((each) => typeof each === 'object');
  return textCell(isHeaders ? JSON.stringify(value) : value.join(' '));
}

/** A line of NDJSON. */
export function jsonOf(entry: LogEntry): string {
  return `${JSON.stringify(entry)}\n`;
}
