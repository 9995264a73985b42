// Usage of this node on its way to the console: drained from the data plane each minute, stored on disk, sent in order.
import { sleep } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import { drainToSpool } from './drain.ts';
import { type SenderOptions, StatsSender } from './sender.ts';
import { Spool } from './spool.ts';
import { openSpoolFolder } from './spool-files.ts';

const INTERVAL_MS = 60_000;
/** Soon after the start: an agent that never lives for a minute must take counts all the same. */
const FIRST_MS = 5_000;
/** The last drain must not keep the agent from ending. */
const LAST_DRAIN_MS = 3000;

export interface StatisticsOptions extends Omit<SenderOptions, 'spool'> {
  /** Folder of the spool. */
  folder: string;
  nodeId: string;
  client: Pick<EdgeClient, 'drainStats'>;
  clock: ServerClock;
  log: Log;
}

export class Statistics {
  private readonly options: StatisticsOptions;
  private readonly log: Log;
  private readonly spool: Spool;
  private readonly sender: StatsSender;
  private timer: NodeJS.Timeout | undefined;
  private draining: Promise<void> | undefined;
  private problem = '';

  /** Throws when the folder cannot be used. */
  constructor(options: StatisticsOptions) {
    const { folder, nodeId, clock, log } = options;
    this.options = options;
    this.log = log;
    const { files, discarded } = openSpoolFolder(folder, nodeId);
    if (discarded.length > 0) log.warn('statistics of an earlier enrollment discarded', { folders: discarded });
    this.spool = new Spool({ files, log, now: () => Math.floor((Date.now() + clock.offsetMs()) / 1000) });
    this.sender = new StatsSender({ ...options, spool: this.spool });
  }

  start(): void {
    this.timer = setTimeout(() => {
      this.timer = setInterval(() => void this.report(), INTERVAL_MS);
      void this.report();
    }, FIRST_MS);
  }

  /** The console is reached. */
  onConnected(): void {
    this.sender.wake();
  }

  /** Drains, and sends what there is. Never rejects. */
  async report(): Promise<void> {
    await this.drain();
    this.sender.wake();
  }

  /** Stores the running minute too. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.sender.stop();
    await this.draining;
    const ended = new AbortController();
    await Promise.race([this.drain().finally(() => ended.abort()), sleep(LAST_DRAIN_MS, ended.signal)]);
  }

  /** One at a time. */
  private drain(): Promise<void> {
    const { client, clock } = this.options;
    this.draining ??= drainToSpool({ client, spool: this.spool, offsetMs: () => clock.offsetMs(), log: this.log })
      .then(() => this.noteProblem(''))
      .catch((error) => this.noteProblem(errorText(error)))
      .finally(() => {
        this.draining = undefined;
      });
    return this.draining;
  }

  /** Said once, and again when it is another. */
  private noteProblem(problem: string): void {
    if (problem !== '' && problem !== this.problem) {
      this.log.warn('statistics not fetched from the data plane, data plane keeps them', { problem });
    }
    this.problem = problem;
  }
}
