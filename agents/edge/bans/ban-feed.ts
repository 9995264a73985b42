// Follows the ban feed: journals what was pushed, and pulls what it cannot follow.
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  type Ban,
  type BanBatch,
  type BanPosition,
  BanPositionSchema,
  type GetBansResponse,
  type OwnBanLift,
  OwnBanLiftSchema,
} from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { FeedFollower } from '../feeds/feed-follower.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import type { BanRow, BanStore, StoredBanChange } from './ban-store.ts';

const PAGE_BANS = 2000;
const MAX_PAGES = 1000;

export interface BanFeedChange extends StoredBanChange {
  base: BanPosition;
  target: BanPosition;
  liftedOwn: OwnBanLift[];
}

export interface BanFeedOptions {
  store: BanStore;
  clock: ServerClock;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** These bans take the place of all that are held, in another history than theirs. Nothing is replaced yet. */
  replacing: (epoch: bigint, kept: ReadonlyMap<string, BanRow>) => void;
  /** A change is in the journal. */
  changed: (change: BanFeedChange, receivedAt: number) => void;
  /** All bans were replaced. */
  replaced: (receivedAt: number) => void;
}

export class BanFeed {
  private readonly options: BanFeedOptions;
  private readonly store: BanStore;
  private readonly follower: FeedFollower<BanBatch>;

  constructor(options: BanFeedOptions) {
    this.options = options;
    this.store = options.store;
    this.follower = new FeedFollower({
      name: 'bans',
      log: options.log,
      channel: options.channel,
      position: () => this.store.position,
      take: (batch, receivedAt) => this.take(batch, receivedAt),
      pull: (channel, signal, answered) => this.pull(channel, signal, answered),
    });
  }

  /** Whether a pull is under way; pushed changes wait meanwhile. */
  get pulling(): boolean {
    return this.follower.pulling;
  }

  get message(): string {
    return this.follower.message;
  }

  onBatch(batch: BanBatch, receivedAt: number): void {
    this.follower.onBatch(batch, receivedAt);
  }

  /** Where the console's feed is. */
  onTarget(target: BanPosition): void {
    this.follower.onTarget(target);
  }

  onConnected(): void {
    this.follower.onConnected();
  }

  stop(): Promise<void> {
    return this.follower.stop();
  }

  private take(batch: BanBatch, receivedAt: number): void {
    const base = this.store.position;
    const target = create(BanPositionSchema, { epoch: batch.epoch, sequence: batch.to, mark: batch.mark });
    this.apply(base, target, batch.upserts, batch.removedIds, batch.liftedOwn, batch.serverTimeMs, receivedAt);
  }

  private apply(
    base: BanPosition,
    target: BanPosition,
    upserts: readonly Ban[],
    removedIds: readonly string[],
    liftedOwn: readonly OwnBanLift[],
    serverTimeMs: bigint,
    receivedAt: number,
  ): void {
    const offsetMs = this.options.clock.offsetMs(serverTimeMs);
    const { rows, refusedIds } = this.store.accept(upserts, offsetMs);
    const stored = this.store.apply(target, rows, [...removedIds, ...refusedIds]);
    const lifts = liftedOwn.map((lift) =>
      create(OwnBanLiftSchema, {
        ...lift,
        expiresNoLaterThanMs: lift.expiresNoLaterThanMs - BigInt(Math.round(offsetMs)),
      }),
    );
    this.options.changed({ ...stored, base, target, liftedOwn: lifts }, receivedAt);
  }

  private async pull(channel: NodeChannel, signal: AbortSignal, answered: () => void): Promise<boolean> {
    const receivedAt = performance.now();
    const base = this.store.position;
    const upserts: Ban[] = [];
    const removedIds: string[] = [];
    const liftedOwn: OwnBanLift[] = [];
    let reset = false;
    let pageToken = '';
    let answer: GetBansResponse;
    for (let page = 0; ; page++) {
      if (page >= MAX_PAGES) throw new Error('the ban list has no last page');
      const after = base.epoch === 0n ? {} : { after: base };
      answer = await channel.getBans({ ...after, pageToken, limit: PAGE_BANS }, { signal });
      this.options.clock.observe(answer.serverTimeMs);
      if (answer.reset && !reset) {
        // The history ended between two pages: what came before belongs to the old one.
        for (const list of [upserts, removedIds, liftedOwn]) list.length = 0;
        reset = true;
      }
      upserts.push(...answer.upserts);
      removedIds.push(...answer.removedIds);
      liftedOwn.push(...answer.liftedOwn);
      if (answer.nextPageToken === '') break;
      if (answer.nextPageToken === pageToken) throw new ConnectError('the console repeats a page', Code.Internal);
      pageToken = answer.nextPageToken;
    }
    const target = answer.position;
    if (!target) throw new Error('the console returned no position');
    answered();
    if (reset) {
      const { rows } = this.store.accept(upserts, this.options.clock.offsetMs(answer.serverTimeMs));
      const latest = new Map<string, BanRow>(rows.map((row) => [row.id, row]));
      for (const id of removedIds) latest.delete(id);
      if (base.epoch !== 0n && base.epoch !== target.epoch) this.options.replacing(target.epoch, latest);
      const replaced = await this.store.replaceAll(target, [...latest.values()]);
      this.options.log.info('all bans replaced', { sequence: target.sequence, bans: latest.size });
      // Caddy reads the journal only when it is worth reading.
      if (replaced.onDisk) this.options.replaced(receivedAt);
      else this.options.changed({ ...replaced, base, target, liftedOwn: [] }, receivedAt);
      return false;
    }
    if (target.epoch !== base.epoch && base.epoch !== 0n)
      throw new Error('the console changed the epoch of the ban feed without a reset');
    if (target.epoch === base.epoch && target.sequence <= base.sequence) return false;
    this.apply(base, target, upserts, removedIds, liftedOwn, answer.serverTimeMs, receivedAt);
    return false;
  }
}
