// Takes the batches of this process's nodes: those of a second are summed and stored in one transaction with the cursors
// of their nodes, and acknowledged after it.
import { toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { Counter } from 'prom-client';
import { appendRuleMinutes } from '../../models/rules/rule-minute.ts';
import { sitesOfClusters } from '../../models/sites/sites-of-clusters.ts';
import {
  appendMinutes,
  type CursorRow,
  type GapRow,
  lockCursors,
  moveCursors,
} from '../../models/usage/usage-batch.ts';
import { makeUsagePartitions, usageFloor } from '../../models/usage/usage-partitions.ts';
import { readUsageSettings } from '../../models/usage/usage-setting.ts';
import { type ReportStatsRequest, ReportStatsRequestSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import { restAfter } from '../../runtime/pace.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { judgeBatch, skippedSpan } from './batch-rules.ts';
import { type CodedReport, decodeReportStats } from './decode-stats.ts';
import type { NodeIdentity } from './identity.ts';
import { RuleSums } from './rule-sums.ts';
import { laneOf, sizeOf, takeGroup } from './stats-group.ts';
import { type Misfit, type Places, readStatsReport, type StatsBatch } from './stats-report.ts';
import { StatsSums } from './stats-sums.ts';

const EVERY_MS = 1_000;
/** Rows of one transaction: a day of 100 nodes with 50 active sites takes four minutes. */
const MOST_ROWS = { current: 100_000, late: 30_000 };
/** Rows that are summed, or written, before others have a turn. */
const ROWS_AT_ONCE = 1_000;
/** Rows that wait; beyond, nodes try again later. */
const MOST_WAITING_ROWS = { current: 400_000, late: 200_000 };
const PLACES_MS = 30_000;
const DAY_MS = 86_400_000;

interface Waiting {
  node: Pick<NodeIdentity, 'nodeId' | 'clusterId'>;
  batch: StatsBatch;
  resolve(acknowledged: bigint): void;
  reject(error: unknown): void;
}

type LeftOut = Misfit | 'foreign_site';

export class StatsIngest {
  readonly #runtime: Runtime;
  readonly #misfits: Counter<'reason'>;
  readonly #stored: Counter<'verdict'>;
  readonly #everyMs: number;
  #waiting: Waiting[] = [];
  readonly #waitingRows = { current: 0, late: 0 };
  #running: Promise<void> | null = null;
  #startedAt = Number.NEGATIVE_INFINITY;
  #places: Promise<Pick<Places, 'floor'> & { keptMs: number }> | null = null;
  #placesUntil = 0;

  /** `everyMs`: from the start of one transaction to that of the next. */
  constructor(runtime: Runtime, everyMs = EVERY_MS) {
    this.#runtime = runtime;
    this.#everyMs = everyMs;
    const registers = [runtime.metrics];
    this.#misfits = new Counter({
      name: 'svc_usage_misfit_rows_total',
      help: 'Usage rows of a site and minute that were rejected or moved to another minute.',
      labelNames: ['reason'],
      registers,
    });
    this.#stored = new Counter({
      name: 'svc_usage_batches_total',
      help: 'Batches of usage counts received from nodes.',
      labelNames: ['verdict'],
      registers,
    });
  }

  /**
   * Answers the highest batch of the node that is stored. Throws invalid_argument for a batch beyond its limits, and
   * resource_exhausted when too much waits.
   */
  async report(node: Waiting['node'], request: CodedReport | ReportStatsRequest): Promise<bigint> {
    const now = Date.now();
    const { floor, keptMs } = await this.#findPlaces(now);
    const batch = readStatsReport(coded(request), { now, floor, keepFrom: now - keptMs });
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
    await this.#running;
  }

  #findPlaces(now: number): Promise<Pick<Places, 'floor'> & { keptMs: number }> {
    if (!this.#places || now >= this.#placesUntil) {
      this.#placesUntil = now + PLACES_MS;
      this.#places = this.#readPlaces(new Date(now)).catch((error) => {
        this.#placesUntil = 0;
        throw error;
      });
    }
    return this.#places;
  }

  async #readPlaces(now: Date): Promise<Pick<Places, 'floor'> & { keptMs: number }> {
    const sql = this.#runtime.pools.api;
    const { retentionDays } = await readUsageSettings(sql);
    const floor = (await usageFloor(sql, now)) ?? (await makeUsagePartitions(sql, now));
    return { floor, keptMs: retentionDays * DAY_MS };
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const early = this.#startedAt + this.#everyMs - performance.now();
      if (early > 0 && !this.#runtime.stopping.aborted) await new Promise((resolve) => setTimeout(resolve, early));
      this.#startedAt = performance.now();
      const group = this.#take();
      try {
        const acknowledged = await this.#store(group);
        for (const [index, { resolve }] of group.entries()) resolve(acknowledged[index]!);
      } catch (error) {
        // A week may be gone, or missing.
        this.#placesUntil = 0;
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
    const client = await this.#runtime.pools.ingest.connect();
    let failed: Error | undefined;
    try {
      await client.query('begin');
      const outcome = await storeGroup(client, group);
      await client.query('commit');
      this.#measure(outcome);
      return outcome.acknowledged;
    } catch (error) {
      failed = error as Error;
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      // After a failed commit nobody knows what the connection is in.
      client.release(failed);
    }
  }

  #measure({ verdicts, leftOut }: Outcome): void {
    for (const verdict of verdicts) this.#stored.inc({ verdict });
    for (const [reason, count] of Object.entries(leftOut)) if (count > 0) this.#misfits.inc({ reason }, count);
  }
}

/** A message of the general decoder, which agents do not meet, takes the way of all others. */
function coded(request: CodedReport | ReportStatsRequest): CodedReport {
  return '$typeName' in request ? decodeReportStats(toBinary(ReportStatsRequestSchema, request)) : request;
}

interface Outcome {
  /** In parallel with the group. */
  acknowledged: bigint[];
  verdicts: string[];
  leftOut: Record<LeftOut, number>;
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
  const siteIds = new Set<string>();
  let summed = 0;
  let begun = performance.now();
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
      summed += sizeOf(batch);
      if (summed >= ROWS_AT_ONCE) {
        // A backlog of many nodes must not hold up heartbeats and bans.
        await restAfter(performance.now() - begun);
        summed = 0;
        begun = performance.now();
      }
      for (const reason of ['bad', 'too_old', 'moved'] as const) outcome.leftOut[reason] += batch.misfits[reason];
      cursor.sequence = batch.sequence;
      cursor.watermark = batch.completeUntil ?? cursor.watermark;
      cursor.storedAt = now.getTime();
      moved.add(cursor);
    }
    outcome.acknowledged.push(cursor.sequence);
  }
  if (moved.size === 0) return outcome;
  const isOfCluster = await sitesOfClusters(client, siteIds);
  for (const rows of sums.pieces(ROWS_AT_ONCE)) {
    begun = performance.now();
    outcome.leftOut.foreign_site += rows.length - (await appendMinutes(client, rows, isOfCluster));
    // A commit beside it waits until all that was written so far is on disk.
    await restAfter(performance.now() - begun);
  }
  for (const rows of rules.pieces(ROWS_AT_ONCE)) {
    begun = performance.now();
    await appendRuleMinutes(client, rows, isOfCluster, now);
    await restAfter(performance.now() - begun);
  }
  await moveCursors(client, [...moved], gaps, now);
  return outcome;
}
