// Brings requests of watched sites to the console as they end, several times a second and only while the console renews its
// watches. Rows go by themselves, in small calls: they wait for no batch, and what is lost is not repeated. A console that is
// not reached is told nothing, and the data plane ends the watch seconds after the last call.
import type { TailLogsResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { LogTail, LogTailWatch, ReportLogTailRequest } from '../../../proto/gen/svc/node/v1/logs_pb.js';
import { errorText, type Log } from '../../kit/log.ts';

const MAX_WATCHES = 64;
const MAX_SECONDS = 30;
const [SHORTEST_MS, LONGEST_MS] = [100, 1_000];
const CALL_MS = 4_000;

/** A connection as far as rows need it. */
export interface TailLane {
  reportLogTail(
    request: Omit<Partial<ReportLogTailRequest>, '$typeName' | '$unknown'>,
    options?: { timeoutMs?: number },
  ): Promise<void>;
}

export interface LogTailOptions {
  client: {
    tailLogs(watches: LogTailWatch[], clockOffsetMs: number): Promise<Pick<TailLogsResponse, 'rows' | 'dropped'>>;
  };
  /** The present connection; undefined while the console is not reached. */
  channel: () => TailLane | undefined;
  /** The console's clock minus this machine's, ms. */
  offsetMs: () => number;
  log: Pick<Log, 'debug'>;
}

export class LogTailer {
  private readonly options: LogTailOptions;
  /** By their ends, monotonic milliseconds. */
  private watches: { watch: LogTailWatch; until: number }[] = [];
  private intervalMs = SHORTEST_MS;
  private timer: NodeJS.Timeout | undefined;
  private working: Promise<void> | undefined;
  private stopped = false;
  private problem = '';

  constructor(options: LogTailOptions) {
    this.options = options;
  }

  /** What the console watches from now on. */
  watch({ watches, intervalMs }: Pick<LogTail, 'watches' | 'intervalMs'>): void {
    const now = performance.now();
    this.watches = watches.slice(0, MAX_WATCHES).map((watch) => ({
      watch,
      until: now + Math.min(watch.seconds, MAX_SECONDS) * 1000,
    }));
    this.intervalMs = Math.min(Math.max(intervalMs, SHORTEST_MS), LONGEST_MS);
    // A watch begins with the first call.
    if (!this.working) this.schedule(0);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.working;
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      const begun = performance.now();
      this.working = this.once().then((isWatching) => {
        this.working = undefined;
        // What is watched may have come meanwhile.
        if (isWatching || this.watches.length > 0)
          this.schedule(Math.max(0, this.intervalMs - (performance.now() - begun)));
      });
    }, delayMs);
  }

  /** Returns whether something is watched. Never rejects. */
  private async once(): Promise<boolean> {
    const { client, channel, offsetMs, log } = this.options;
    const now = performance.now();
    this.watches = this.watches.filter(({ until }) => until > now);
    const isWatching = this.watches.length > 0;
    const lane = channel();
    // The watches end by themselves.
    if (!lane) return isWatching;
    try {
      const watches = this.watches.map(({ watch }) => watch);
      const { rows, dropped } = await client.tailLogs(watches, Math.round(offsetMs()));
      if (rows.length > 0 || dropped.length > 0) await lane.reportLogTail({ rows, dropped }, { timeoutMs: CALL_MS });
      this.problem = '';
    } catch (error) {
      const problem = errorText(error);
      if (this.problem !== problem) log.debug('watched requests not reported', { problem });
      this.problem = problem;
    }
    return isWatching;
  }
}
