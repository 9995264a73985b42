// supervisor.lock: which processes a supervisor started. No lock itself (kit/locks.ts has those): it lets the next start find
// and stop what a killed supervisor left behind.
import { sleep } from '../../kit/backoff.ts';
import { readTextIfPresent, removeFile, writeFileAtomic } from '../../kit/files.ts';
import type { Log } from '../../kit/log.ts';
import { isAlive, type ProcessMark } from '../../kit/process-info.ts';
import { killGroup } from './managed-child.ts';

const STOP_GRACE_MS = 11_000;
const POLL_MS = 50;

export interface SupervisorRecord {
  supervisor: ProcessMark;
  children: ProcessMark[];
  /** The holder of sockets, where it is the supervisor's own: the next one takes it over. */
  holder?: ProcessMark | undefined;
}

export function writeSupervisorRecord(path: string, record: SupervisorRecord): void {
  writeFileAtomic(path, `${JSON.stringify(record)}\n`, 0o600, false);
}

export function readSupervisorRecord(path: string): SupervisorRecord | undefined {
  try {
    const value = JSON.parse(readTextIfPresent(path) ?? 'null') as SupervisorRecord | null;
    const marks = value ? [value.supervisor, ...value.children, ...(value.holder ? [value.holder] : [])] : [];
    const valid = marks.every(
      (mark) => Number.isInteger(mark.pid) && mark.pid > 1 && typeof mark.startTime === 'string',
    );
    return value && valid ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Stops processes that a dead supervisor left. Throws when the supervisor of the record is alive. */
export async function stopLeftovers(path: string, log: Log): Promise<void> {
  const record = readSupervisorRecord(path);
  if (!record) return;
  if (record.supervisor.pid !== process.pid && isAlive(record.supervisor)) {
    throw new Error(`another supervisor (pid ${record.supervisor.pid}) uses this folder`);
  }
  const alive = record.children.filter(isAlive);
  for (const mark of alive) {
    log.warn('supervisor stops processes of a killed supervisor', { pid: mark.pid });
    killGroup(mark.pid, 'SIGTERM');
  }
  for (let waitedMs = 0; alive.some(isAlive) && waitedMs < STOP_GRACE_MS; waitedMs += POLL_MS) await sleep(POLL_MS);
  for (const mark of alive.filter(isAlive)) killGroup(mark.pid);
  removeFile(path);
}
