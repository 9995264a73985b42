// Heartbeats: every interval the console asks for (15 s), and soon after something was applied or changed.
import type { HeartbeatRequest, HeartbeatResponse } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import { errorText, type Log } from '../../kit/log.ts';

const DEFAULT_INTERVAL_S = 15;
/** Between two heartbeats, so that several changes at once make one. */
const MIN_GAP_MS = 250;
/** Heartbeats that may be sent within the window: a stream of changes must not become a stream of heartbeats. */
const BURST = 4;
const BURST_WINDOW_MS = 15_000;

export interface HeartbeatOptions {
  channel: () => NodeChannel | undefined;
  log: Log;
  build: () => Omit<Partial<HeartbeatRequest>, '$typeName' | '$unknown'>;
  answered: (answer: HeartbeatResponse) => void;
}

export class HeartbeatLoop {
  private readonly options: HeartbeatOptions;
  private timer: NodeJS.Timeout | undefined;
  /** When the last heartbeats were sent, oldest first. */
  private sent: number[] = [];
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
    else this.schedule(this.nextAllowed() - performance.now());
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private nextAllowed(): number {
    const last = this.sent.at(-1) ?? Number.NEGATIVE_INFINITY;
    return this.sent.length < BURST ? last + MIN_GAP_MS : Math.max(last + MIN_GAP_MS, this.sent[0]! + BURST_WINDOW_MS);
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    if (!this.stopped) this.timer = setTimeout(() => void this.beat(), Math.max(0, delayMs));
  }

  private async beat(): Promise<void> {
    const channel = this.options.channel();
    this.sent = [...this.sent, performance.now()].slice(-BURST);
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
