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

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/** Control characters that JSON leaves as they are. */
const BEYOND_JSON = /[\u007f-\u009f]/g;

export const CSV_HEAD = csvLine(COLUMNS);

export function csvOf(entry: LogEntry): string {
  return csvLine(COLUMNS.map((column) => cellOf(entry[column])));
}

function cellOf(value: LogEntry[keyof LogEntry]): string | number {
  if (value === null) return '';
  if (typeof value === 'number') return value;
  if (!Array.isArray(value)) return textCell(visible(String(value)));
  const isHeaders = value.some((each) => typeof each === 'object');
  return textCell(visible(isHeaders ? JSON.stringify(value) : value.join(' ')));
}

/** Files are also read in terminals, which control characters would command. JSON writes them as escapes by itself. */
function visible(text: string): string {
  return text.replaceAll(CONTROL, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** A line of NDJSON. */
export function jsonOf(entry: LogEntry): string {
  return `${JSON.stringify(entry).replaceAll(BEYOND_JSON, (character) => `\\u00${character.charCodeAt(0).toString(16)}`)}\n`;
}
