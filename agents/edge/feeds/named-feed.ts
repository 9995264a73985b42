// A feed by name on the node: journal, place, repair and acknowledgement are the same for all of them. What a body says and
// what becomes of it is the owner's.
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  type FeedBatch,
  type FeedPosition,
  FeedPositionSchema,
  type GetFeedResponse,
} from '../../../proto/gen/svc/node/v1/feeds_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import type { AgentEvent } from '../lib/agent-event.ts';
import type { NodeReport } from '../lib/node-report.ts';
import { ApplyQueue } from './apply-queue.ts';
import { FeedFollower } from './feed-follower.ts';
import { FeedJournal } from './feed-journal.ts';

const MAX_PAGES = 1000;

/** What a feed is about. Bodies come in the order of the feed; one that comes twice must do no harm. */
export interface FeedOwner {
  /**
   * Puts a change in force; the node acknowledges it afterwards. What fails is tried again. `place`: everything up to it is
   * in force with the change; undefined where more follows.
   */
  apply(body: Uint8Array, place?: FeedPosition): void | Promise<void>;
  /**
   * Puts these in the place of everything before. `place`: everything up to it is in force with them; undefined at start,
   * where they are what the journal has.
   */
  replace(bodies: readonly Uint8Array[], place?: FeedPosition): void | Promise<void>;
  /**
   * For owners whose data plane keeps the feed on a disk of its own: whether it lacks some of what comes before the place.
   * Asked at start and of each new process. The feed is fetched anew then.
   */
  lacks?(place: FeedPosition): Promise<boolean>;
  /** Everything that is in force, as bodies: what the journal is shortened to. */
  snapshot(): readonly Uint8Array[];
  /**
   * The journal lost changes. 'continue': what was read before them is good enough, and the node goes on from there.
   * 'startOver': the node has nothing, and fetches everything.
   */
  unreadable(reason: string): 'continue' | 'startOver';
}

export interface NamedFeedOptions {
  name: string;
  owner: FeedOwner;
  path: string;
  nodeId: string;
  clusterId: string;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** Everything up to the place is in force. */
  applied: (position: FeedPosition) => void;
}

export class NamedFeed {
  private readonly options: NamedFeedOptions;
  private readonly journal: FeedJournal;
  private readonly follower: FeedFollower<FeedBatch>;
  private readonly queue: ApplyQueue;
  /** Up to where everything is in force; undefined until that is known. */
  private applied: FeedPosition | undefined;
  /** Counts how often the feed started over: what was begun before is acknowledged no more. */
  private era = 0;
  /** Process of the data plane that answered last. */
  private process = '';

  /** Reads the journal. Throws when the disk cannot be used. */
  constructor(options: NamedFeedOptions) {
    this.options = options;
    const { name, owner, path, nodeId, clusterId, log, channel } = options;
    this.queue = new ApplyQueue(name, log);
    this.journal = FeedJournal.open({ path, feed: name, nodeId, clusterId, log });
    const { damage } = this.journal;
    if (damage !== '') {
      const outcome = owner.unreadable(damage);
      log.error('journal of a feed not readable', { feed: name, reason: damage, outcome });
      if (outcome === 'startOver') this.journal.forget();
    }
    this.follower = new FeedFollower({
      name,
      log,
      channel,
      position: () => this.journal.position,
      take: (batch) => this.take([batch.body], { ...batch, sequence: batch.to }),
      pull: (on, signal, answered) => this.pull(on, signal, answered),
    });
  }

  start(): void {
    const { position } = this.journal;
    const bodies = this.journal.take();
    if (position.epoch === 0n) return;
    this.force(async () => {
      await this.options.owner.replace(bodies);
      await this.ask(position);
    }, position);
  }

  status(report: NodeReport): void {
    const { name } = this.options;
    const { position } = this.journal;
    report.heartbeat.feeds = [
      ...(report.heartbeat.feeds ?? []),
      this.applied ?? create(FeedPositionSchema, { feed: name }),
    ];
    if (position.epoch > 0n) report.positions.feeds = [...(report.positions.feeds ?? []), position];
    const shown = (report.shown.feeds ?? {}) as Record<string, object>;
    report.shown.feeds = {
      ...shown,
      [name]: {
        epoch: position.epoch.toString(),
        sequence: position.sequence.toString(),
        appliedSequence: (this.applied?.sequence ?? 0n).toString(),
      },
    };
    report.problem('following', this.follower.message);
    report.problem('following', this.queue.problem);
    report.problem('lasting', this.journal.problem);
  }

  event(event: AgentEvent): void {
    const { name } = this.options;
    if (event.case === 'feedBatch' && event.value.feed === name) this.follower.onBatch(event.value, event.receivedAt);
    else if (event.case === 'target') {
      const target = event.value.feeds.find(({ feed }) => feed === name);
      if (target) this.follower.onTarget(target);
    } else if (event.case === 'connected') this.follower.onConnected();
    else if (event.case === 'dataPlaneStatus') this.onProcess(event.value.instanceId);
  }

  async maintain(): Promise<void> {
    // What waits is not in the snapshot.
    if (this.queue.isIdle && this.journal.isWorthRewriting) await this.journal.rewrite(this.options.owner.snapshot());
  }

  async stop(): Promise<void> {
    await Promise.all([this.follower.stop(), this.queue.stop()]);
  }

  close(): Promise<void> {
    return this.journal.close();
  }

  private onProcess(instanceId: string): void {
    if (instanceId === this.process) return;
    this.process = instanceId;
    this.queue.hurry();
    if (!this.options.owner.lacks) return;
    this.queue.add(
      // After what was begun before.
      async () => {
        if (this.applied) await this.ask(this.applied);
      },
      () => undefined,
    );
  }

  /** Fetches the feed anew where the data plane lacks some of it. */
  private async ask(place: FeedPosition): Promise<void> {
    const { name, owner, log } = this.options;
    if (!(await owner.lacks?.(place))) return;
    log.warn('the data plane lacks a part of a feed, it is fetched anew', { feed: name, sequence: place.sequence });
    this.era++;
    this.applied = undefined;
    this.queue.clear();
    this.journal.forget();
    this.follower.fetch();
  }

  /** Journals changes that follow, and puts them in force. */
  private take(bodies: readonly Uint8Array[], to: Pick<FeedPosition, 'epoch' | 'sequence' | 'mark'>): void {
    this.journal.append(bodies, to);
    const { position } = this.journal;
    this.force(async () => {
      for (const [index, body] of bodies.entries())
        await this.options.owner.apply(body, index === bodies.length - 1 ? position : undefined);
    }, position);
  }

  private force(run: () => void | Promise<void>, position: FeedPosition): void {
    const { era } = this;
    this.queue.add(run, () => {
      if (era !== this.era) return;
      this.applied = position;
      this.options.applied(position);
    });
  }

  private async pull(channel: NodeChannel, signal: AbortSignal, answered: () => void): Promise<boolean> {
    const { name, owner, log } = this.options;
    const { era } = this;
    const base = this.journal.position;
    const after = base.epoch === 0n ? {} : { after: base };
    const bodies: Uint8Array[] = [];
    let reset = false;
    let pageToken = '';
    let page: GetFeedResponse;
    for (let count = 0; ; count++) {
      if (count >= MAX_PAGES) throw new Error(`the feed ${name} has no last page`);
      page = await channel.getFeed({ feed: name, ...after, pageToken }, { signal });
      if (page.reset && !reset) {
        // The history ended between two pages: what came before belongs to the old one.
        bodies.length = 0;
        reset = true;
      }
      if (page.body.length > 0) bodies.push(page.body);
      if (page.nextPageToken === '') break;
      if (page.nextPageToken === pageToken) throw new ConnectError('the console repeats a page', Code.Internal);
      pageToken = page.nextPageToken;
    }
    const { position } = page;
    if (!position) throw new Error('the console returned no position');
    // What was asked for does not follow any more.
    if (era !== this.era) return true;
    answered();
    if (reset) {
      this.journal.position = position;
      this.queue.clear();
      this.force(() => owner.replace(bodies, position), position);
      await this.journal
        .rewrite(bodies)
        .catch((error) => log.error('feed not written to its journal', { feed: name, error }));
      log.info('everything of a feed replaced', { feed: name, sequence: position.sequence });
      return false;
    }
    if (position.epoch !== base.epoch)
      throw new Error(`the console changed the epoch of the feed ${name} without a reset`);
    if (position.sequence > base.sequence) this.take(bodies, position);
    return false;
  }
}
