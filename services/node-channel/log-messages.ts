// What the console's thread and the thread of request logs send each other.
import type { Code } from '@connectrpc/connect';
import type { Appended } from '../../models/logs/log-writer.ts';
import type { LoggingNode } from './log-report.ts';

export interface LogWorkerData {
  databaseUrl: string;
  behindPooler: boolean;
}

export type LogQuestion = { type: 'report'; id: number; bytes: Uint8Array; node: LoggingNode } | { type: 'stop' };

/** `refused` counts rows that were set aside, too. `code` is one of the Connect protocol, `sqlState` one of the database. */
export type LogAnswer =
  | { type: 'appended'; id: number; appended: Appended }
  | { type: 'failed'; id: number; message: string; code?: Code; sqlState?: string };
