// What certificate authorities are answered (RFC 8555, section 8.3): from the console, to the data plane.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { AcmeBatch, AcmePosition } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import { AcmeFeed } from './acme-feed.ts';
import { AcmePusher } from './acme-pusher.ts';
import { AcmeTokens } from './acme-tokens.ts';

export interface AcmeAnswersOptions {
  client: Pick<EdgeClient, 'setAcmeTokens'>;
  clock: ServerClock;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** The data plane answers from this now. */
  applied: (position: AcmePosition) => void;
}

export class AcmeAnswers {
  private readonly tokens = new AcmeTokens();
  private readonly feed: AcmeFeed;
  private readonly pusher: AcmePusher;

  constructor({ client, clock, log, channel, applied }: AcmeAnswersOptions) {
    const { tokens } = this;
    this.pusher = new AcmePusher({ tokens, client, clock, log, applied });
    this.feed = new AcmeFeed({
      tokens,
      log,
      channel,
      changed: (batch) => this.pusher.changed(batch),
      replaced: () => this.pusher.replaced(),
    });
  }

  /** The position of the tokens; undefined before the console said anything. */
  get position(): AcmePosition | undefined {
    return this.tokens.position.epoch === 0n ? undefined : this.tokens.position;
  }

  /** What the data plane answers from; undefined while that is not known. */
  get applied(): AcmePosition | undefined {
    return this.pusher.position;
  }

  /** The first thing that is wrong; "" when all is well. */
  get message(): string {
    return this.feed.message || this.pusher.problem;
  }

  onBatch(batch: AcmeBatch): void {
    this.feed.onBatch(batch);
  }

  onTarget(target: AcmePosition): void {
    this.feed.onTarget(target);
  }

  onStatus(status: GetStatusResponse): void {
    this.pusher.onStatus(status);
  }

  onConnected(): void {
    this.feed.onConnected();
  }

  async stop(): Promise<void> {
    await Promise.all([this.feed.stop(), this.pusher.stop()]);
  }
}
