// Stores batches of counts: those of a second are summed and stored in one transaction with the cursors of their nodes, and
// acknowledged after it. Runs on the thread of counts (stats-worker.ts).
import { Code, ConnectError } from '@connectrpc/connect';
import type { Pool, PoolClient } from 'pg';
import { appendRuleMinutes } from '../../models/rules/rule-minute.ts';
import { sitesOfClusters } from '../../models/sites/sites-of-clusters.ts';
import { appendTopMarks } from '../../models/traffic/top-list.ts';
import { appendTrafficMarks } from '../../models/traffic/traffic-mark.ts';
import {
  appendMinutes,
  type CursorRow,
  type GapRow,
  lockCursors,
  moveCursors,
} from '../../models/usage/usage-batch.ts';
import { restAfter } from '../../runtime/pace.ts';
import { judgeBatch, skippedSpan } from './batch-rules.ts';
import type { CodedReport } from './decode-stats.ts';
import type { NodeIdentity } from './identity.ts';
import { RuleSums } from './rule-sums.ts';
import { laneOf, sizeOf, takeGroup } from './stats-group.ts';
import { type Misfit, type Places, readStatsReport, type StatsBatch } from './stats-report.ts';
import { StatsSums } from './stats-sums.ts';
import { TopSums } from './top-sums.ts';
import { TrafficSums } from './traffic-sums.ts';

/** Rows of one transaction: a day of 100 nodes with 50 active sites takes four minutes. */
const MOST_ROWS = { current: 100_000, late: 30_000 };
/** Rows that are written before the database has a rest: with 1,000, the slowest bans of two cores waited twice as long beside them. */
const ROWS_AT_ONCE = 300;
/** Rows that wait; beyond, nodes try again later. */
const MOST_WAITING_ROWS = { current: 400_000, late: 200_000 };

/** Whose counts they are. */
export type CountingNode = Pick<NodeIdentity, 'nodeId' | 'clusterId'>;

interface Waiting {
  node: CountingNode;
  batch: StatsBatch;
  resolve(acknowledged: bigint): void;
  reject(error: unknown): void;
}

type LeftOut = Misfit | 'foreign_site';

/** What became of a group of batches. */
export interface StoredGroup {
  verdicts: string[];
  leftOut: Record<LeftOut, number>;
}

export interface StatsStoreOptions {
  pool: Pool;
  /** From the start of one transaction to that of the next. */
  everyMs: number;
  stored(group: StoredGroup): void;
}

export class StatsStore {
  readonly #options: StatsStoreOptions;
  #waiting: Waiting[] = [];
  readonly #waitingRows = { current: 0, late: 0 };
  #running: Promise<void> | null = null;
  #startedAt = Number.NEGATIVE_INFINITY;
  #stopping = false;

  constructor(options: StatsStoreOptions) {
    this.#options = options;
  }

  /**
   * Returns the highest batch of the node that is stored. Throws invalid_argument for a batch beyond its limits, and
   * resource_exhausted when too much waits.
   */
  async report(node: CountingNode, request: CodedReport, places: Places): Promise<bigint> {
    const batch = readStatsReport(request, places);
    const lane = laneOf(batch);
    if (this.#waitingRows[lane] > MOST_WAITING_ROWS[lane]) {
      throw new ConnectError('too many requests; retry later', Code.ResourceExhausted);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ node, batch, resolve, reject });
      this.#waitingRows[lane] += sizeOf(batch);
      this.#running ??= this.#drain().finally(() => {
        this.#running = null;
      });
    });
  }

  /** Stores what waits. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const early = this.#startedAt + this.#options.everyMs - performance.now();
      if (early > 0 && !this.#stopping) await new Promise((resolve) => setTimeout(resolve, early));
      this.#startedAt = performance.now();
      const group = this.#take();
      try {
        const acknowledged = await this.#store(group);
        for (const [index, { resolve }] of group.entries()) resolve(acknowledged[index]!);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
  }

  #take(): Waiting[] {
    const { group, left } = takeGroup(this.#waiting, MOST_ROWS);
    this.#waiting = left;
    for (const { batch } of group) this.#waitingRows[laneOf(batch)] -= sizeOf(batch);
    return group;
  }

  async #store(group: readonly Waiting[]): Promise<bigint[]> {
    const client = await this.#options.pool.connect();
    let failed: Error | undefined;
    try {
      await client.query('begin');
      const { acknowledged, ...outcome } = await storeGroup(client, group);
      await client.query('commit');
      this.#options.stored(outcome);
      return acknowledged;
    } catch (error) {
      failed = error as Error;
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      // After a failed commit nobody knows what the connection is in.
      client.release(failed);
    }
  }
}

interface Outcome extends StoredGroup {
  /** In parallel with the group. */
  acknowledged: bigint[];
}

async function storeGroup(client: PoolClient, group: readonly Waiting[]): Promise<Outcome> {
  const now = new Date();
  const cursors = await lockCursors(
    client,
    group.map(({ node }) => node.nodeId),
  );
  const outcome: Outcome = {
    acknowledged: [],
    verdicts: [],
    leftOut: { bad: 0, too_old: 0, moved: 0, foreign_site: 0 },
  };
  const moved = new Set<CursorRow>();
  const gaps: GapRow[] = [];
  const sums = new StatsSums();
  const rules = new RuleSums();
  const traffic = new TrafficSums(now.getTime());
  const taken: Pick<Waiting, 'node' | 'batch'>[] = [];
  const siteIds = new Set<string>();
  for (const { node, batch } of group) {
    const cursor = cursors.get(node.nodeId)!;
    const verdict = batch.sequence === 0n ? 'question' : judgeBatch(cursor, batch);
    outcome.verdicts.push(verdict);
    if (verdict === 'next' || verdict === 'next_after_gap') {
      if (verdict === 'next_after_gap') {
        const begins = batch.rows.reduce(
          (first, { minute }) => Math.min(first, minute),
          batch.completeUntil ?? now.getTime(),
        );
        gaps.push({ nodeId: node.nodeId, ...skippedSpan(cursor, begins), reason: 'skipped' });
      }
      for (const gap of batch.gaps) gaps.push({ nodeId: node.nodeId, ...gap, reason: 'told' });
      for (const row of batch.rows) {
        sums.add(node.clusterId, row, batch.numbers);
        rules.add(node.clusterId, row);
        siteIds.add(row.siteId);
      }
      for (const reason of ['bad', 'too_old', 'moved'] as const) outcome.leftOut[reason] += batch.misfits[reason];
      cursor.sequence = batch.sequence;
      cursor.watermark = batch.completeUntil ?? cursor.watermark;
      cursor.storedAt = now.getTime();
      moved.add(cursor);
      taken.push({ node, batch });
    }
    outcome.acknowledged.push(cursor.sequence);
  }
  if (moved.size === 0) return outcome;
  const isOfCluster = await sitesOfClusters(client, siteIds);
  for (const rows of sums.pieces(ROWS_AT_ONCE)) {
    const begun = performance.now();
    const kept = await appendMinutes(client, rows, isOfCluster);
    traffic.addKept(kept);
    outcome.leftOut.foreign_site += rows.length - kept.length;
    // A commit beside it waits until all that was written so far is on disk.
    await restAfter(performance.now() - begun);
  }
  for (const rows of rules.pieces(ROWS_AT_ONCE)) {
    const begun = performance.now();
    await appendRuleMinutes(client, rows, isOfCluster, now);
    await restAfter(performance.now() - begun);
  }
  const tops = new TopSums(now.getTime());
  for (const { node, batch } of taken) {
    traffic.addBatch(node, batch, isOfCluster);
    tops.add(node.clusterId, batch.rows, isOfCluster);
  }
  await appendTrafficMarks(client, traffic.marks(), restAfter);
  const begun = performance.now();
  await appendTopMarks(client, tops.marks());
  await restAfter(performance.now() - begun);
  await moveCursors(client, [...moved], gaps, now);
  return outcome;
}
