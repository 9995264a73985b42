// Brings rows of request logs from the data plane to the console, as they are. The data plane keeps them on disk until the
// console has them, so nothing is kept here: an agent that ends at any point loses no row. What has piled up goes over a
// connection of its own, with pauses, so that bans and heartbeats never wait for it.
import type { DrainLogsResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { ReportLogsRequest, ReportLogsResponse } from '../../../proto/gen/svc/node/v1/logs_pb.js';
import { sleep } from '../../kit/backoff.ts';
import type { Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import { PullLoop } from '../lib/pull-loop.ts';

/** Rows of one answer that say that there are more. */
const MANY_ROWS = 1000;
/** The pause after a piece of the backlog is as long as the piece took, up to this. */
const MAX_PAUSE_MS = 1000;
const CALL_MS = 30_000;

/** A connection as far as rows need it. */
export interface LogLane {
  reportLogs(
    request: Omit<Partial<ReportLogsRequest>, '$typeName' | '$unknown'>,
    options?: { timeoutMs?: number; signal?: AbortSignal },
  ): Promise<ReportLogsResponse>;
}

export interface LogSenderOptions {
  client: Pick<EdgeClient, 'drainLogs'>;
  /** The present connection; undefined while the console is not reached. */
  channel: () => LogLane | undefined;
  /** Opens another one. */
  openBacklog: () => LogLane & { close(): void };
  /** The console's clock minus this machine's, ms. */
  offsetMs: () => number;
  log: Log;
}

/** What the console has of a ring. */
type Taken = Pick<DrainLogsResponse, 'ring' | 'position'>;

export class LogSender {
  private readonly options: LogSenderOptions;
  private readonly loop: PullLoop;
  private taken: Taken | undefined;
  private backlog: ReturnType<LogSenderOptions['openBacklog']> | undefined;

  constructor(options: LogSenderOptions) {
    this.options = options;
    this.loop = new PullLoop({
      name: 'request logs',
      log: options.log,
      pull: (signal) => this.sendOne(signal),
      settled: () => this.closeBacklog(),
    });
  }

  /** There may be rows. */
  look(): void {
    if (this.options.channel()) this.loop.request();
  }

  /** The console is reached again. */
  hurry(): void {
    this.loop.hurry();
    this.look();
  }

  async stop(): Promise<void> {
    const stopped = this.loop.stop();
    this.closeBacklog();
    await stopped;
  }

  /** Returns whether there is more. */
  private async sendOne(signal: AbortSignal): Promise<boolean> {
    const { client, channel, offsetMs, openBacklog } = this.options;
    const present = channel();
    if (!present) return false;
    const { taken } = this;
    // Said once: what follows may fail, and what it brought is then to be brought again.
    this.taken = undefined;
    const { ring, position, rows, losses } = await client.drainLogs(taken, Math.round(offsetMs()));
    if (rows.length === 0 && losses.length === 0) return false;
    const isMany = rows.length >= MANY_ROWS;
    if (isMany) this.backlog ??= openBacklog();
    else this.closeBacklog();
    const begun = performance.now();
    try {
      await (this.backlog ?? present).reportLogs({ rows, ring, losses }, { timeoutMs: CALL_MS, signal });
    } catch (error) {
      // A connection that failed is not used again.
      this.closeBacklog();
      throw error;
    }
    this.taken = { ring, position };
    if (isMany) await sleep(Math.min(MAX_PAUSE_MS, performance.now() - begun), signal);
    return true;
  }

  private closeBacklog(): void {
    this.backlog?.close();
    this.backlog = undefined;
  }
}
