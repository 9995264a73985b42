// Follows a feed: takes pushed batches over by the rules of delta-rules.ts and pulls what it cannot follow. The same for every
// feed whose place is a number; what a batch is and how everything is fetched is the feed's own.
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { judgeBatch } from '../config/delta-rules.ts';
import { PullLoop } from '../lib/pull-loop.ts';

/** A push usually overtakes the pull that a heartbeat's answer would cause. */
const GRACE_MS = 200;
const MAX_WAITING_BATCHES = 256;

export interface Place {
  epoch: bigint;
  sequence: bigint;
}

export interface Batch {
  epoch: bigint;
  from: bigint;
  to: bigint;
  truncated?: boolean;
}

export interface FollowerOptions<B extends Batch> {
  /** In messages. */
  name: string;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** Where the node is. */
  position: () => Place;
  /** Takes over a batch that follows the position. */
  take: (batch: B, receivedAt: number) => void;
  /** Fetches once; true when another round is due at once. `answered`: the newest place is known. */
  pull: (channel: NodeChannel, signal: AbortSignal, answered: () => void) => Promise<boolean>;
}

export class FeedFollower<B extends Batch> {
  private readonly options: FollowerOptions<B>;
  private readonly loop: PullLoop;
  private waiting: { batch: B; receivedAt: number }[] = [];
  private wanted: Place | undefined;

  constructor(options: FollowerOptions<B>) {
    this.options = options;
    this.loop = new PullLoop({
      name: options.name,
      log: options.log,
      pull: (signal) => this.pull(signal),
      settled: () => this.takeWaiting(),
    });
  }

  /** Whether a pull is under way; pushed batches wait meanwhile. */
  get pulling(): boolean {
    return this.loop.busy;
  }

  /** Why the node does not follow; "" when it does. */
  get message(): string {
    return this.loop.problem === '' ? '' : `${this.options.name} not fetched: ${this.loop.problem}`;
  }

  onBatch(batch: B, receivedAt: number): void {
    if (!this.loop.busy) this.judge(batch, receivedAt);
    else if (this.waiting.length < MAX_WAITING_BATCHES) this.waiting.push({ batch, receivedAt });
    else this.want({ epoch: batch.epoch, sequence: batch.to });
  }

  /** Where the console is. */
  onTarget(target: Place): void {
    if (!this.isBehind(target)) return;
    this.want(target);
    this.loop.request(this.options.position().epoch === target.epoch ? GRACE_MS : 0);
  }

  onConnected(): void {
    this.loop.hurry();
  }

  /** Fetches what the node lacks, without being told of anything. */
  fetch(): void {
    this.loop.request();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  private isBehind({ epoch, sequence }: Place): boolean {
    const mine = this.options.position();
    return epoch !== mine.epoch || sequence > mine.sequence;
  }

  private want({ epoch, sequence }: Place): void {
    if (this.wanted?.epoch !== epoch || this.wanted.sequence < sequence) this.wanted = { epoch, sequence };
  }

  private judge(batch: B, receivedAt: number): void {
    const verdict = judgeBatch(this.options.position(), batch);
    if (verdict === 'apply') this.options.take(batch, receivedAt);
    else if (verdict === 'pull') {
      this.want({ epoch: batch.epoch, sequence: batch.to });
      this.loop.request();
    }
  }

  private takeWaiting(): void {
    const { waiting, wanted } = this;
    this.waiting = [];
    for (const { batch, receivedAt } of waiting) this.onBatch(batch, receivedAt);
    if (!wanted || this.loop.busy || !this.options.channel()) return;
    if (this.isBehind(wanted)) this.loop.request(GRACE_MS);
  }

  private async pull(signal: AbortSignal): Promise<boolean> {
    const channel = this.options.channel();
    if (!channel) return false;
    return this.options.pull(channel, signal, () => {
      this.wanted = undefined;
    });
  }
}
