// What the console's thread and the thread of counts send each other.
import type { Code } from '@connectrpc/connect';
import type { Places } from './stats-report.ts';
import type { CountingNode, StoredGroup } from './stats-store.ts';

/** How the thread of counts begins. */
export interface StatsWorkerData {
  databaseUrl: string;
  behindPooler: boolean;
  everyMs: number;
}

/** `read` decodes a report and keeps it under the id, until `store` or `drop` names the id. */
export type StatsQuestion =
  | { type: 'read'; id: number; bytes: Uint8Array }
  | { type: 'store'; id: number; node: CountingNode; places: Places }
  | { type: 'drop'; id: number }
  | { type: 'stop' };

/** `code` of the Connect protocol, or `sqlState` of the database. */
export interface StatsFailure {
  message: string;
  code?: Code;
  sqlState?: string;
}

export type StatsAnswer =
  | { type: 'read'; id: number; rows: number }
  | { type: 'stored'; id: number; acknowledged: bigint }
  | { type: 'failed'; id: number; failure: StatsFailure }
  | { type: 'group'; group: StoredGroup };
