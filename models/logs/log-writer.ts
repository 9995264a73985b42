// Where rows of request logs are stored. test/helpers/log-store-suite.ts says what every store does.
import type { LogRow, MissingReason } from './log-row.ts';

/** Rows that a node lost of a site in all, by one ring of its. */
export interface LogLoss {
  siteId: string;
  rows: number;
}

export interface LogBatch {
  nodeId: string;
  clusterId: string;
  rows: readonly LogRow[];
  /** Rows of a site that were set aside before, by the reason. */
  aside: readonly { siteId: string; reason: MissingReason; rows: number }[];
  /** Names the ring of the losses. */
  ring: bigint;
  losses: readonly LogLoss[];
}

export interface Appended {
  /** Rows that are new. */
  stored: number;
  /** Rows that were there. */
  doubles: number;
  /** Rows that the store does not take, and rows of sites that are not of the cluster. */
  refused: number;
  /** Rows beyond what is kept. */
  tooOld: number;
}

export interface LogWriter {
  /** Stores a batch in one transaction. A row that the store does not take never costs the others. */
  append(batch: LogBatch): Promise<Appended>;
}
