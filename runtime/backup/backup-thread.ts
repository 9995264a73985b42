// A backup in a thread of its own: reading back a large one computes for minutes, and the console goes on meanwhile. The thread
// ends with its process.
import { Worker } from 'node:worker_threads';
import { BackupError, type BackupProblem } from './backup-error.ts';
import type { DumpProgress } from './dump.ts';
import type { BackupOptions } from './write-backup.ts';

export type BackupProgress = DumpProgress & { phase: 'write' | 'verify' };

/** What the thread begins with. */
export type ThreadBackup = Omit<BackupOptions, 'signal' | 'onProgress'>;

export interface ThreadResult {
  file: string;
  bytes: number;
  rows: number;
}

export type ThreadMessage =
  | { type: 'progress'; progress: BackupProgress }
  | { type: 'done'; result: ThreadResult }
  | { type: 'failed'; problem: BackupProblem | null; code: string | null; message: string };

/** Writes and verifies a backup. Throws BackupError, and what the database refused with its code; nothing is left then. */
export function writeBackupInThread(
  backup: ThreadBackup,
  signal: AbortSignal,
  onProgress: (progress: BackupProgress) => void,
): Promise<ThreadResult> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('backup-worker.ts', import.meta.url), { workerData: backup });
  const stop = () => worker.postMessage('stop');
  signal.addEventListener('abort', stop);
  return new Promise<ThreadResult>((resolve, reject) => {
    worker.on('message', (message: ThreadMessage) => {
      if (message.type === 'progress') onProgress(message.progress);
      else if (message.type === 'done') resolve(message.result);
      else reject(errorOf(message));
    });
    worker.on('error', reject);
    worker.on('exit', () => reject(new Error('the thread of the backup ended')));
  }).finally(() => signal.removeEventListener('abort', stop));
}

function errorOf({ problem, code, message }: ThreadMessage & { type: 'failed' }): Error {
  return problem === null ? Object.assign(new Error(message), { code }) : new BackupError(problem, message);
}
