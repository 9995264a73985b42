// Brings the spool's batches to the console, one at a time and in the order of their numbers. The newest go over the connection
// that everything else takes; what has piled up before them goes over one of its own, with pauses, so that bans and heartbeats
// never wait for it.
import type { ReportStatsRequest, ReportStatsResponse } from '../../../proto/gen/svc/node/v1/node_pb.js';
import { sleep } from '../../kit/backoff.ts';
import type { Log } from '../../kit/log.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { Spool } from './spool.ts';

/** The pause after a piece of the backlog is as long as the piece took, up to this. */
const MAX_PAUSE_MS = 1000;

/** A connection as far as batches need it. */
export interface StatsLane {
  reportStats(request: Omit<Partial<ReportStatsRequest>, '$typeName' | '$unknown'>): Promise<ReportStatsResponse>;
}

export interface SenderOptions {
  spool: Spool;
  /** The present connection; undefined while the console is not reached. */
  channel: () => StatsLane | undefined;
  /** Opens another one. */
  openBacklog: () => StatsLane & { close(): void };
  log: Log;
}

export class StatsSender {
  private readonly options: SenderOptions;
  private readonly loop: PullLoop;
  private backlog: ReturnType<SenderOptions['openBacklog']> | undefined;

  constructor(options: SenderOptions) {
    this.options = options;
    this.loop = new PullLoop({
      name: 'statistics',
      log: options.log,
      pull: (signal) => this.sendOne(signal),
      settled: () => this.closeBacklog(),
    });
  }

  /** Why nothing moves; "" when it does. */
  get problem(): string {
    return this.loop.problem;
  }

  /** There may be something to send, and somebody to send it to. */
  wake(): void {
    this.loop.hurry();
    this.loop.request();
  }

  async stop(): Promise<void> {
    const stopped = this.loop.stop();
    // What is under way is answered by nobody; it is sent again after the next start.
    this.closeBacklog();
    await stopped;
  }

  /** Answers whether there is more. */
  private async sendOne(signal: AbortSignal): Promise<boolean> {
    const { spool, channel } = this.options;
    const present = channel();
    if (!present) return false;
    if (spool.unconfirmed) {
      spool.confirm((await present.reportStats({ sequence: 0n })).acknowledged);
      return true;
    }
    const next = spool.next();
    if (!next) return false;
    const { batch, current } = next;
    if (current) this.closeBacklog();
    else this.backlog ??= this.options.openBacklog();
    const begun = performance.now();
    const { acknowledged } = await this.send(this.backlog ?? present, batch);
    if (!spool.acknowledge(batch.sequence, acknowledged)) {
      throw new Error(`the console rejects batch ${batch.sequence}; it has ${acknowledged}`);
    }
    if (!current) await sleep(Math.min(MAX_PAUSE_MS, performance.now() - begun), signal);
    return true;
  }

  private async send(lane: StatsLane, batch: Parameters<StatsLane['reportStats']>[0]): Promise<ReportStatsResponse> {
    try {
      return await lane.reportStats(batch);
    } catch (error) {
      // A connection that failed is not used again.
      this.closeBacklog();
      throw error;
    }
  }

  private closeBacklog(): void {
    this.backlog?.close();
    this.backlog = undefined;
  }
}
