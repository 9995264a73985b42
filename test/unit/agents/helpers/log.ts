// Logs of a test: kept, not printed.
import { createLog, type Log } from '../../../../agents/kit/log.ts';

export function memoryLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  return { lines, log: createLog('debug', {}, (line) => lines.push(line)) };
}
