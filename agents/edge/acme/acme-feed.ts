// Follows what certificate authorities are to be answered, and asks for everything where it cannot follow.
import type { AcmeBatch, AcmePosition } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { FeedFollower } from '../feeds/feed-follower.ts';
import type { AcmeTokens } from './acme-tokens.ts';

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
  private readonly follower: FeedFollower<AcmeBatch>;

  constructor(options: AcmeFeedOptions) {
    this.options = options;
    this.tokens = options.tokens;
    this.follower = new FeedFollower({
      name: 'HTTP-01 responses',
      log: options.log,
      channel: options.channel,
      position: () => this.tokens.position,
      take: (batch) => {
        this.tokens.apply(batch);
        this.options.changed(batch);
      },
      pull: (channel, signal, answered) => this.pull(channel, signal, answered),
    });
  }

  get message(): string {
    return this.follower.message;
  }

  onBatch(batch: AcmeBatch): void {
    this.follower.onBatch(batch, 0);
  }

  /** Where the console is. */
  onTarget(target: AcmePosition): void {
    if (target.epoch !== 0n) this.follower.onTarget(target);
  }

  onConnected(): void {
    this.follower.onConnected();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  private async pull(channel: NodeChannel, signal: AbortSignal, answered: () => void): Promise<boolean> {
    const answer = await channel.getAcmeTokens({ signal });
    const { position } = answer;
    if (!position) throw new Error('the console returned no position');
    // It is the newest there is; a target seen before cannot be newer.
    answered();
    const mine = this.tokens.position;
    if (position.epoch === mine.epoch && position.sequence < mine.sequence) return false;
    this.tokens.replace(answer, position);
    this.options.replaced();
    return false;
  }
}
