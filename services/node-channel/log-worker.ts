// The thread of request logs: it decodes what nodes logged and stores it over a connection of its own, with less priority than
// the console's thread, which passes on bans and configuration meanwhile.
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { ConnectError } from '@connectrpc/connect';
import { PostgresLogWriter } from '../../models/logs/postgres-log-writer.ts';
import { createPgPool } from '../../runtime/pg-pool.ts';
import type { LogAnswer, LogQuestion, LogWorkerData } from './log-messages.ts';
import { readLogReport } from './log-report.ts';

/** Of 19; with both threads busy on one processor, the console's gets about nine tenths of it. */
const NICE = 10;

const { databaseUrl, behindPooler } = workerData as LogWorkerData;
const port = parentPort!;
try {
  setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICE);
} catch {
  // Elsewhere a thread has the priority of its process.
}
const pool = createPgPool({ url: databaseUrl, behindPooler, name: 'svc-request-logs', max: 1 });
// An idle connection that breaks is replaced at its next use.
pool.on('error', () => undefined);
const writer = new PostgresLogWriter(pool);
let last: Promise<unknown> = Promise.resolve();

port.on('message', (question: LogQuestion) => {
  if (question.type === 'stop') {
    void last.then(() => pool.end()).finally(() => port.close());
    return;
  }
  const { id, bytes, node } = question;
  last = last
    .then(() => report(bytes, node))
    .then(
      (appended) => port.postMessage({ type: 'appended', id, appended } satisfies LogAnswer),
      (error) => port.postMessage(failure(id, error)),
    );
});

async function report(bytes: Uint8Array, node: Extract<LogQuestion, { type: 'report' }>['node']) {
  const batch = readLogReport(bytes, node);
  const appended = await writer.append(batch);
  return { ...appended, refused: appended.refused + batch.aside.reduce((sum, { rows }) => sum + rows, 0) };
}

function failure(id: number, error: unknown): LogAnswer {
  if (error instanceof ConnectError) return { type: 'failed', id, message: error.rawMessage, code: error.code };
  const { message, code } = error as Error & { code?: string };
  return { type: 'failed', id, message, ...(code === undefined ? {} : { sqlState: code }) };
}
