// Tells the console which places of feeds are in force: one call at a time, after a pause in which only the last place of each
// feed is kept, and at once what is urgent. A lost report is not repeated: every heartbeat says the same.
import type { AppliedRequest } from '../../../proto/gen/svc/node/v1/node_pb.js';
import { appliedPause } from '../../kit/applied-pause.ts';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { ReachedSteps } from '../../kit/reached-steps.ts';
import type { ReachedPlace } from '../lib/agent-event.ts';

export class AppliedReporter {
  private readonly channel: () => NodeChannel | undefined;
  private readonly log: Log;
  /** What is to be told, by feed. */
  private places = new Map<string, ReachedPlace>();
  private readonly steps = new Map<string, ReachedSteps>();
  private timer: NodeJS.Timeout | undefined;
  private sending = false;
  private spreadMs = 0;

  constructor(channel: () => NodeChannel | undefined, log: Log) {
    this.channel = channel;
    this.log = log;
  }

  reached(place: ReachedPlace): void {
    const { feed, epoch, number, urgent } = place;
    this.places.set(feed, place);
    let steps = this.steps.get(feed);
    if (!steps) {
      steps = new ReachedSteps();
      this.steps.set(feed, steps);
    }
    steps.reached(epoch, number);
    if (!urgent) this.arm();
    else if (!this.sending) void this.send();
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
    this.stop();
    const { places } = this;
    this.places = new Map();
    const channel = this.channel();
    if (!channel || places.size === 0) return;
    this.sending = true;
    const request: Omit<Partial<AppliedRequest>, '$typeName' | '$unknown'> = {};
    for (const [feed, place] of places) place.write(request, this.steps.get(feed)!.take());
    try {
      await channel.applied(request);
    } catch (error) {
      this.log.debug('applied positions not reported, the next heartbeat reports them', { error });
    } finally {
      this.sending = false;
      if ([...this.places.values()].some(({ urgent }) => urgent)) void this.send();
      else if (this.places.size > 0) this.arm();
    }
  }
}
