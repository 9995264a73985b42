// Tells the console which positions are enforced: one call at a time, after a pause in which only the last position of
// each feed is kept, and at once what certificate authorities wait for. A lost report is not repeated: every heartbeat says the same.
import type { BanPosition } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { AcmePosition } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { appliedPause } from '../../kit/applied-pause.ts';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { ReachedSteps } from '../../kit/reached-steps.ts';

export class AppliedReporter {
  private readonly channel: () => NodeChannel | undefined;
  private readonly log: Log;
  private config: { position: ConfigPosition; failed: FailedEntry[]; micros: number } | undefined;
  private bans: { position: BanPosition; micros: number } | undefined;
  private acme: AcmePosition | undefined;
  private readonly configSteps = new ReachedSteps();
  private readonly bansSteps = new ReachedSteps();
  private timer: NodeJS.Timeout | undefined;
  private sending = false;
  private spreadMs = 0;

  constructor(channel: () => NodeChannel | undefined, log: Log) {
    this.channel = channel;
    this.log = log;
  }

  configApplied(position: ConfigPosition, failed: FailedEntry[], micros: number): void {
    this.config = { position, failed, micros };
    this.configSteps.reached(position.epoch, position.revision);
    this.arm();
  }

  bansApplied(position: BanPosition, micros: number): void {
    this.bans = { position, micros };
    this.bansSteps.reached(position.epoch, position.sequence);
    this.arm();
  }

  acmeApplied(position: AcmePosition): void {
    this.acme = position;
    this.stop();
    if (!this.sending) void this.send();
  }

  /** How far apart the console wants the reports of its nodes. */
  spread(ms: number): void {
    this.spreadMs = ms;
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private arm(): void {
    if (!this.sending) this.timer ??= setTimeout(() => void this.send(), appliedPause(this.spreadMs));
  }

  private async send(): Promise<void> {
    this.timer = undefined;
    const { config, bans, acme } = this;
    this.config = undefined;
    this.bans = undefined;
    this.acme = undefined;
    const channel = this.channel();
    if (!channel || (!config && !bans && !acme)) return;
    this.sending = true;
    try {
      await channel.applied({
        ...(config ? { config: config.position, failed: config.failed, configMicros: BigInt(config.micros) } : {}),
        ...(bans ? { bans: bans.position, bansMicros: BigInt(bans.micros) } : {}),
        ...(acme ? { acme } : {}),
        configSteps: this.configSteps.take(),
        bansSteps: this.bansSteps.take(),
      });
    } catch (error) {
      this.log.debug('applied positions not reported, the next heartbeat reports them', { error });
    } finally {
      this.sending = false;
      if (this.acme) void this.send();
      else if (this.config || this.bans) this.arm();
    }
  }
}
