// Follows what certificate authorities are to be answered: takes pushed batches over by the rules of delta-rules.ts and asks for
// everything where it cannot follow.
import { create } from '@bufbuild/protobuf';
import {
  type AcmeBatch,
  type AcmePosition,
  AcmePositionSchema,
} from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { judgeBatch } from '../config/delta-rules.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { AcmeTokens } from './acme-tokens.ts';

/** A push usually overtakes the pull that a heartbeat's answer would cause. */
const GRACE_MS = 200;
const MAX_HELD_BATCHES = 256;

export interface AcmeFeedOptions {
  tokens: AcmeTokens;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** A batch was taken over. */
  changed: (batch: AcmeBatch) => void;
  /** Everything is another. */
  replaced: () => void;
}

export class AcmeFeed {
  private readonly options: AcmeFeedOptions;
  private readonly tokens: AcmeTokens;
  private readonly loop: PullLoop;
  private waiting: AcmeBatch[] = [];
  private wanted: AcmePosition | undefined;

  constructor(options: AcmeFeedOptions) {
    this.options = options;
    this.tokens = options.tokens;
    this.loop = new PullLoop({
      name: 'HTTP-01 responses',
      log: options.log,
      pull: (signal) => this.pull(signal),
      settled: () => this.takeWaiting(),
    });
  }

  get message(): string {
    return this.loop.problem === '' ? '' : `HTTP-01 responses not fetched: ${this.loop.problem}`;
  }

  onBatch(batch: AcmeBatch): void {
    if (!this.loop.busy) this.take(batch);
    else if (this.waiting.length < MAX_HELD_BATCHES) this.waiting.push(batch);
    else this.want(batch.epoch, batch.to);
  }

  /** Where the console is. */
  onTarget({ epoch, sequence }: AcmePosition): void {
    if (epoch === 0n || !this.isBehind(epoch, sequence)) return;
    this.want(epoch, sequence);
    this.loop.request(this.tokens.position.epoch === epoch ? GRACE_MS : 0);
  }

  onConnected(): void {
    this.loop.hurry();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  private isBehind(epoch: bigint, sequence: bigint): boolean {
    const mine = this.tokens.position;
    return epoch !== mine.epoch || sequence > mine.sequence;
  }

  private want(epoch: bigint, sequence: bigint): void {
    if (this.wanted?.epoch !== epoch || this.wanted.sequence < sequence)
      this.wanted = create(AcmePositionSchema, { epoch, sequence });
  }

  private take(batch: AcmeBatch): void {
    const verdict = judgeBatch(this.tokens.position, batch);
    if (verdict === 'ignore') return;
    if (verdict === 'pull') {
      this.want(batch.epoch, batch.to);
      this.loop.request();
      return;
    }
    this.tokens.apply(batch);
    this.options.changed(batch);
  }

  private takeWaiting(): void {
    const { waiting, wanted } = this;
    this.waiting = [];
    for (const batch of waiting) this.onBatch(batch);
    if (!wanted || this.loop.busy || !this.options.channel()) return;
    if (this.isBehind(wanted.epoch, wanted.sequence)) this.loop.request(GRACE_MS);
  }

  private async pull(signal: AbortSignal): Promise<boolean> {
    const answer = await this.options.channel()?.getAcmeTokens({ signal });
    if (!answer) return false;
    const { position } = answer;
    if (!position) throw new Error('the console returned no position');
    // It is the newest there is; a target seen before cannot be newer.
    this.wanted = undefined;
    const mine = this.tokens.position;
    if (position.epoch === mine.epoch && position.sequence < mine.sequence) return false;
    this.tokens.replace(answer, position);
    this.options.replaced();
    return false;
  }
}
