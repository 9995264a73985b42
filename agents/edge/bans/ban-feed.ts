// Follows the ban feed: takes pushed batches over by the rules of delta-rules.ts and pulls what it cannot follow.
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
import { judgeBatch } from '../config/delta-rules.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import type { BanRow, BanStore, StoredBanChange } from './ban-store.ts';

const GRACE_MS = 200;
const MAX_HELD_BATCHES = 256;
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
  /** A change is in the journal. */
  changed: (change: BanFeedChange, receivedAt: number) => void;
  /** All bans were replaced. */
  replaced: (receivedAt: number) => void;
}

export class BanFeed {
  private readonly options: BanFeedOptions;
  private readonly store: BanStore;
  private readonly loop: PullLoop;
  private waiting: { batch: BanBatch; receivedAt: number }[] = [];
  private wanted: BanPosition | undefined;

  constructor(options: BanFeedOptions) {
    this.options = options;
    this.store = options.store;
    this.loop = new PullLoop({
      name: 'bans',
      log: options.log,
      pull: (signal) => this.pull(signal),
      settled: () => this.takeWaiting(),
    });
  }

  /** Whether a pull is under way; pushed changes wait meanwhile. */
  get pulling(): boolean {
    return this.loop.busy;
  }

  get message(): string {
    return this.loop.problem === '' ? '' : `bans not fetched: ${this.loop.problem}`;
  }

  onBatch(batch: BanBatch, receivedAt: number): void {
    if (!this.loop.busy) this.take(batch, receivedAt);
    else if (this.waiting.length < MAX_HELD_BATCHES) this.waiting.push({ batch, receivedAt });
    else this.want(batch.epoch, batch.to);
  }

  /** Where the console's feed is. */
  onTarget(target: BanPosition): void {
    const mine = this.store.position;
    if (target.epoch === mine.epoch && target.sequence <= mine.sequence) return;
    this.want(target.epoch, target.sequence);
    this.loop.request(mine.epoch === target.epoch ? GRACE_MS : 0);
  }

  onConnected(): void {
    this.loop.hurry();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  private want(epoch: bigint, sequence: bigint): void {
    if (this.wanted?.epoch !== epoch || this.wanted.sequence < sequence)
      this.wanted = create(BanPositionSchema, { epoch, sequence });
  }

  private take(batch: BanBatch, receivedAt: number): void {
    const base = this.store.position;
    const verdict = judgeBatch(base, batch);
    if (verdict === 'ignore') return;
    if (verdict === 'pull') {
      this.want(batch.epoch, batch.to);
      this.loop.request();
      return;
    }
    const target = create(BanPositionSchema, { epoch: batch.epoch, sequence: batch.to, mark: batch.mark });
    this.apply(base, target, batch.upserts, batch.removedIds, batch.liftedOwn, batch.serverTimeMs, receivedAt);
  }

  private takeWaiting(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const { batch, receivedAt } of waiting) this.onBatch(batch, receivedAt);
    const { wanted } = this;
    const { epoch, sequence } = this.store.position;
    const behind = wanted !== undefined && (wanted.epoch !== epoch || wanted.sequence > sequence);
    if (behind && !this.loop.busy && this.options.channel()) this.loop.request(GRACE_MS);
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

  private async pull(signal: AbortSignal): Promise<boolean> {
    const channel = this.options.channel();
    if (!channel) return false;
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
    this.wanted = undefined;
    if (reset) {
      const { rows } = this.store.accept(upserts, this.options.clock.offsetMs(answer.serverTimeMs));
      const latest = new Map<string, BanRow>(rows.map((row) => [row.id, row]));
      for (const id of removedIds) latest.delete(id);
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
