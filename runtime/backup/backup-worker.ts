// The thread of a backup.
import { parentPort, workerData } from 'node:worker_threads';
import { BackupError } from './backup-error.ts';
import type { ThreadBackup, ThreadMessage } from './backup-thread.ts';
import { writeBackup } from './write-backup.ts';

/** Progress is shown, not counted. */
const SAY_EVERY_MS = 200;

const port = parentPort!;
const say = (message: ThreadMessage) => port.postMessage(message);
const stopping = new AbortController();
port.on('message', () => stopping.abort());

let said = 0;
try {
  const { file, bytes, rows } = await writeBackup({
    ...(workerData as ThreadBackup),
    signal: stopping.signal,
    onProgress(progress) {
      if (Date.now() - said < SAY_EVERY_MS) return;
      said = Date.now();
      say({ type: 'progress', progress });
    },
  });
  say({ type: 'done', result: { file, bytes, rows } });
} catch (error) {
  const problem = error instanceof BackupError ? error.code : null;
  const { code = null, message = String(error) } = error as { code?: string; message?: string };
  say({ type: 'failed', problem, code: typeof code === 'string' ? code : null, message });
}
port.close();
