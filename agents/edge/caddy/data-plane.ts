// One process of Caddy as the agent sees it: who it is, whether it serves. Every five seconds (ten times a second while it does
// not answer) its status is compared with what the feeds hold; each feed pushes the difference. What Caddy refuses is tried
// again with back-off.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from './edge-client.ts';
import type { Pusher } from './pusher.ts';

const POLL_MS = 5000;
/** A process that comes back lacks what the disk did not take until it has answered. */
const POLL_DOWN_MS = 100;

/** A feed of changes that Caddy follows. */
export interface FollowedFeed {
  readonly name: string;
  readonly pusher: Pick<
    Pusher<never, never, never>,
    'activity' | 'idle' | 'isDown' | 'retryInMs' | 'forgive' | 'markDown'
  >;
  /** Caddy answered, and nothing was pushed since it was asked: compare where it is. */
  compare(status: GetStatusResponse, isNewProcess: boolean): void;
  /** After each status. */
  polled?(status: GetStatusResponse): Promise<void>;
}

export interface DataPlaneOptions {
  client: EdgeClient;
  log: Log;
  /** Health or instance changed. */
  changed: () => void;
  /** Caddy said how it is. */
  answered: (status: GetStatusResponse) => void;
}

export class DataPlane {
  readonly client: EdgeClient;
  private readonly options: DataPlaneOptions;
  private readonly log: Log;
  private readonly feeds: FollowedFeed[] = [];
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private polling = false;
  /** The process that answered last. */
  private instanceId = '';
  /** The last status received; undefined while Caddy does not answer. */
  status: GetStatusResponse | undefined;
  private problem = 'the data plane has not responded yet';
  /** What was refused last, by feed. */
  private readonly refused = new Map<FollowedFeed, string>();

  constructor(options: DataPlaneOptions) {
    this.options = options;
    this.client = options.client;
    this.log = options.log;
  }

  /** Compares and pushes this feed from now on. */
  follow(feed: FollowedFeed): void {
    this.feeds.push(feed);
  }

  get healthy(): boolean {
    return this.status?.serving === true && this.failure === '';
  }

  /** Why Caddy is not healthy; "" when it is. */
  get message(): string {
    if (this.failure !== '') return this.failure;
    if (this.status?.serving === false) return 'the data plane has no open listeners';
    return this.status?.warnings[0] ?? '';
  }

  private get failure(): string {
    if (this.problem !== '') return this.problem;
    return this.feeds.map((feed) => this.refused.get(feed) ?? '').find((problem) => problem !== '') ?? '';
  }

  start(): void {
    void this.poll();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.client.close();
  }

  /** Asks Caddy at once how it is. */
  check(): void {
    this.schedule(0);
  }

  /** Caddy took a change of this feed. */
  accepted(feed: FollowedFeed): void {
    this.refused.delete(feed);
  }

  /** Caddy refused a change of this feed, or did not answer. */
  failed(feed: FollowedFeed, problem: string, unavailable: boolean): void {
    this.log.warn('data plane rejected a change', { feed: feed.name, problem });
    this.refused.set(feed, problem);
    if (unavailable) this.status = undefined;
    this.options.changed();
    this.schedule(this.pollDelay());
  }

  /** After a failure as soon as it may be tried again; quickly while a process starts. */
  private pollDelay(): number {
    if (this.status === undefined || !this.status.serving) return POLL_DOWN_MS;
    const waiting = this.feeds.filter(({ pusher }) => pusher.isDown).map(({ pusher }) => pusher.retryInMs);
    if (waiting.length === 0) return POLL_MS;
    return Math.min(POLL_MS, Math.max(POLL_DOWN_MS, ...waiting));
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    if (!this.stopped) this.timer = setTimeout(() => void this.poll(), delayMs);
  }

  private async poll(): Promise<void> {
    if (this.polling) return;
    this.polling = true;
    const activity = this.feeds.map(({ pusher }) => pusher.activity);
    try {
      const status = await this.client.getStatus();
      const isNewProcess = status.instanceId !== this.status?.instanceId;
      const wasHealthy = this.healthy;
      this.status = status;
      this.problem = '';
      if (isNewProcess) {
        this.log.info('data plane responds', {
          instance: status.instanceId,
          version: status.version,
          warnings: status.warnings,
        });
      }
      if (status.instanceId !== this.instanceId) {
        this.instanceId = status.instanceId;
        this.refused.clear();
        for (const { pusher } of this.feeds) pusher.forgive();
      }
      for (const [index, feed] of this.feeds.entries()) {
        const { pusher } = feed;
        const isQuiet = activity[index] === pusher.activity;
        if (isQuiet && (isNewProcess || pusher.isDown || pusher.idle)) feed.compare(status, isNewProcess);
      }
      this.options.answered(status);
      for (const feed of this.feeds) await feed.polled?.(status);
      if (isNewProcess || wasHealthy !== this.healthy) this.options.changed();
      this.schedule(this.pollDelay());
    } catch (error) {
      this.down(errorText(error));
      this.schedule(POLL_DOWN_MS);
    } finally {
      this.polling = false;
    }
  }

  private down(problem: string): void {
    if (this.status !== undefined) this.log.warn('data plane does not respond', { problem });
    else if (this.problem !== problem) this.log.info('waiting for the data plane', { problem });
    const changed = this.status !== undefined;
    this.status = undefined;
    this.problem = problem;
    for (const { pusher } of this.feeds) pusher.markDown();
    if (changed) this.options.changed();
  }
}
