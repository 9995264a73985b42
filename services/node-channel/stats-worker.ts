// The thread of counts: it decodes and sums what nodes counted, and stores it over a connection of its own, while the
// console's thread passes on bans and configuration. It also runs with less priority: after a long absence of the
// console its nodes deliver millions of rows, which may take their time.
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { Code, ConnectError } from '@connectrpc/connect';
import { createPgPool } from '../../runtime/pg-pool.ts';
import { type CodedReport, decodeReportStats } from './decode-stats.ts';
import type { StatsAnswer, StatsFailure, StatsQuestion, StatsWorkerData } from './stats-messages.ts';
import { StatsStore } from './stats-store.ts';

/** Of 19; with both threads busy on one processor, the console's gets about nine tenths of it. */
const NICE = 10;

const { databaseUrl, behindPooler, everyMs } = workerData as StatsWorkerData;
const port = parentPort!;
const say = (answer: StatsAnswer) => port.postMessage(answer);

yieldToOthers();
const pool = createPgPool({ url: databaseUrl, behindPooler, name: 'svc-counts', max: 1 });
// An idle connection that breaks is replaced at its next use.
pool.on('error', () => undefined);
const store = new StatsStore({ pool, everyMs, stored: (group) => say({ type: 'group', group }) });
const read = new Map<number, CodedReport>();

port.on('message', (question: StatsQuestion) => {
  switch (question.type) {
    case 'read':
      return readReport(question.id, question.bytes);
    case 'store': {
      const { id, node, places } = question;
      const report = read.get(id)!;
      read.delete(id);
      store.report(node, report, places).then(
        (acknowledged) => say({ type: 'stored', id, acknowledged }),
        (error) => say({ type: 'failed', id, failure: failureOf(error) }),
      );
      return;
    }
    case 'drop':
      read.delete(question.id);
      return;
    case 'stop':
      void store
        .stop()
        .then(() => pool.end())
        .finally(() => port.close());
  }
});

function readReport(id: number, bytes: Uint8Array): void {
  try {
    const report = decodeReportStats(bytes);
    const { minutes, gaps } = report;
    read.set(id, report);
    const rules = minutes.reduce((sum, minute) => sum + minute.rules.length, 0);
    say({ type: 'read', id, rows: minutes.length + rules + gaps.length });
  } catch {
    say({ type: 'failed', id, failure: { message: 'the message cannot be decoded', code: Code.InvalidArgument } });
  }
}

function failureOf(error: unknown): StatsFailure {
  if (error instanceof ConnectError) return { message: error.rawMessage, code: error.code };
  const { message, code } = error as Error & { code?: string };
  return { message, ...(code === undefined ? {} : { sqlState: code }) };
}

/** Linux gives each thread a priority of its own. */
function yieldToOthers(): void {
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), NICE);
  } catch {
    // Elsewhere it has that of the process.
  }
}
