// Takes the batches of this process's nodes, and hands them to the thread of counts: a day of a hundred nodes is millions of
// rows, and none of the work on them delays what this thread does for bans and heartbeats.
import { toBinary } from '@bufbuild/protobuf';
import { Counter } from 'prom-client';
import { makeUsagePartitions, usageFloor } from '../../models/usage/usage-partitions.ts';
import { readUsageSettings } from '../../models/usage/usage-setting.ts';
import { type ReportStatsRequest, ReportStatsRequestSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Allowance, UNCOUNTED } from './budgets.ts';
import type { CountingNode, StoredGroup } from './stats-store.ts';
import { StatsThread } from './stats-thread.ts';

const EVERY_MS = 1_000;
const PLACES_MS = 30_000;
const DAY_MS = 86_400_000;

interface KnownPlaces {
  floor: number;
  keptMs: number;
}

export class StatsIngest {
  readonly #runtime: Runtime;
  readonly #thread: StatsThread;
  readonly #misfits: Counter<'reason'>;
  readonly #stored: Counter<'verdict'>;
  #places: Promise<KnownPlaces> | null = null;
  #placesUntil = 0;

  /** `everyMs`: from the start of one transaction to that of the next. */
  constructor(runtime: Runtime, everyMs = EVERY_MS) {
    this.#runtime = runtime;
    const { databaseUrl, databaseDirectUrl } = runtime.env;
    const data = { databaseUrl, behindPooler: databaseUrl !== databaseDirectUrl, everyMs };
    this.#thread = new StatsThread(data, {
      stored: (group) => this.#measure(group),
      failed: (err) => runtime.log.error({ err }, 'the thread of counts failed, the next report starts another one'),
    });
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
   * Returns the highest batch of the node that is stored. Throws invalid_argument for what is no report and for a batch beyond
   * its limits, and resource_exhausted when too much waits, or for more rows than `allowance` allows.
   */
  async report(
    node: CountingNode,
    report: Uint8Array | ReportStatsRequest,
    allowance: Pick<Allowance, 'rows'> = UNCOUNTED,
  ): Promise<bigint> {
    // A message of the general decoder, which agents do not meet, takes the way of all others.
    const bytes = report instanceof Uint8Array ? report : toBinary(ReportStatsRequestSchema, report);
    const now = Date.now();
    const [{ floor, keptMs }, read] = await Promise.all([this.#findPlaces(now), this.#thread.read(bytes)]);
    try {
      allowance.rows(read.rows);
    } catch (error) {
      read.drop();
      throw error;
    }
    const { nodeId, clusterId } = node;
    return read.store({ nodeId, clusterId }, { now, floor, keepFrom: now - keptMs }).catch((error) => {
      // A week may be gone, or missing.
      this.#placesUntil = 0;
      throw error;
    });
  }

  /** Stores what waits. */
  async stop(): Promise<void> {
    await this.#thread.stop();
  }

  #findPlaces(now: number): Promise<KnownPlaces> {
    if (!this.#places || now >= this.#placesUntil) {
      this.#placesUntil = now + PLACES_MS;
      this.#places = this.#readPlaces(new Date(now)).catch((error) => {
        this.#placesUntil = 0;
        throw error;
      });
    }
    return this.#places;
  }

  async #readPlaces(now: Date): Promise<KnownPlaces> {
    const sql = this.#runtime.pools.api;
    const { retentionDays } = await readUsageSettings(sql);
    const floor = (await usageFloor(sql, now)) ?? (await makeUsagePartitions(sql, now));
    return { floor, keptMs: retentionDays * DAY_MS };
  }

  #measure({ verdicts, leftOut }: StoredGroup): void {
    for (const verdict of verdicts) this.#stored.inc({ verdict });
    for (const [reason, count] of Object.entries(leftOut)) if (count > 0) this.#misfits.inc({ reason }, count);
  }
}
