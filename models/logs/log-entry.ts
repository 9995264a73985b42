import type { LogEntry } from '../../contract/resources/logs.ts';
import type { LogRow } from './log-row.ts';

/** A row as the API has it. */
export function entryOf({ at, secure, upstream, ...row }: LogRow, nodeName: string | null): LogEntry {
  return {
    ...(row as unknown as LogEntry),
    time: new Date(at).toISOString(),
    nodeName,
    scheme: secure ? 'https' : 'http',
    upstreamAddr: upstream,
  };
}
