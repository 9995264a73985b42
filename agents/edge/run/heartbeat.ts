// Heartbeats: every interval the console asks for (15 s), and soon after something was applied or changed.
import type { HeartbeatRequest, HeartbeatResponse } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import { errorText, type Log } from '../../kit/log.ts';

const DEFAULT_INTERVAL_S = 15;
/** Shortest time between two heartbeats, so that a stream of changes is not a stream of heartbeats. */
const MIN_GAP_MS = 1000;

export interface HeartbeatOptions {
  channel: () => NodeChannel | undefined;
  log: Log;
  build: () => Omit<Partial<HeartbeatRequest>, '$typeName' | '$unknown'>;
  answered: (answer: HeartbeatResponse) => void;
}

export class HeartbeatLoop {
  private readonly options: HeartbeatOptions;
  private timer: NodeJS.Timeout | undefined;
  private lastSent = Number.NEGATIVE_INFINITY;
  private intervalMs = DEFAULT_INTERVAL_S * 1000;
  private sending = false;
  private again = false;
  private stopped = false;
  /** Why the last heartbeat failed; "" after a success. */
  problem = '';

  constructor(options: HeartbeatOptions) {
    this.options = options;
  }

  start(): void {
    void this.beat();
  }

  /** Sends one as soon as the gap to the last allows. */
  soon(): void {
    if (this.sending) this.again = true;
    else this.schedule(Math.max(0, this.lastSent + MIN_GAP_MS - performance.now()));
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    if (!this.stopped) this.timer = setTimeout(() => void this.beat(), delayMs);
  }

  private async beat(): Promise<void> {
    const channel = this.options.channel();
    this.lastSent = performance.now();
    if (channel && !this.sending) {
      this.sending = true;
      this.again = false;
      try {
        const answer = await channel.heartbeat(this.options.build(), { timeoutMs: 10_000 });
        if (answer.intervalSeconds > 0) this.intervalMs = Math.min(300, answer.intervalSeconds) * 1000;
        this.problem = '';
        if (!this.stopped) this.options.answered(answer);
      } catch (error) {
        const problem = errorText(error);
        if (this.problem !== problem) this.options.log.warn('heartbeat failed', { problem });
        this.problem = problem;
      } finally {
        this.sending = false;
      }
    }
    if (this.again) this.soon();
    else this.schedule(this.intervalMs);
  }
}
