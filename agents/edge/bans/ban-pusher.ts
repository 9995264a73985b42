// Brings the console's bans into one data plane, and lifts of own bans with them.
import type { BanState, GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { BanPosition, OwnBanLift } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { Log } from '../../kit/log.ts';
import type { DataPlane, FollowedFeed } from '../caddy/data-plane.ts';
import { type Change, Pusher } from '../caddy/pusher.ts';
import type { BanFeedChange } from './ban-feed.ts';
import type { BanRow, BanStore } from './ban-store.ts';

const RETRY_UNAPPLIED_MS = 60_000;
const MAX_LIFTS = 10_000;

interface BanPush extends Change<BanPosition> {
  upserts: Map<string, BanRow>;
  removed: Set<string>;
}

export interface BanPusherOptions {
  dataPlane: DataPlane;
  store: BanStore;
  log: Log;
  /** Caddy enforces the bans up to this state now. */
  applied: (state: BanState, micros: number) => void;
}

export class BanPusher implements FollowedFeed {
  readonly name = 'bans';
  readonly pusher: Pusher<BanPosition, BanPush, BanState>;
  private readonly options: BanPusherOptions;
  private lastRetry = performance.now();
  private unapplied = 0n;
  /** Lifts of own bans that Caddy has not confirmed. */
  private readonly lifts = new Set<OwnBanLift>();

  constructor(options: BanPusherOptions) {
    this.options = options;
    const { dataPlane, store, log } = options;
    const { client } = dataPlane;
    this.pusher = new Pusher<BanPosition, BanPush, BanState>({
      name: this.name,
      log,
      position: () => store.position,
      same: samePosition,
      unwritten: (position) => {
        const change = store.changeSince(position);
        return change && banPush(position, change, performance.now());
      },
      merge: mergeBans,
      push: async ({ base, target, upserts, removed }) => {
        const messages = [...upserts.values()].map((row) => store.toMessage(row));
        const liftedOwn = [...this.lifts];
        const state = banState(
          await client.applyBans({ base, target, upserts: messages, removedIds: [...removed], liftedOwn }),
        );
        for (const lift of liftedOwn) this.lifts.delete(lift);
        return state;
      },
      reload: async () => banState(await client.reloadBans()),
      repair: () => store.rewrite(),
      isAhead: (position) => this.isAhead(position),
      positionOf: (state) => state.position!,
      applied: (state, micros) => this.applied(state, micros),
      failed: (problem, unavailable) => dataPlane.failed(this, problem, unavailable),
    });
    dataPlane.follow(this);
  }

  push(change: BanFeedChange, receivedAt: number): void {
    this.noteLifts(change.liftedOwn);
    this.pusher.enqueue(banPush(change.base, change, receivedAt));
  }

  reload(): void {
    this.pusher.requestReload();
  }

  /** Lifts own bans that Caddy may hold again. */
  liftOwn(lifts: readonly OwnBanLift[]): void {
    this.noteLifts(lifts);
    this.pushLifts();
  }

  compare(status: GetStatusResponse, isNewProcess: boolean): void {
    const state = status.bans;
    if (!state?.position) return;
    const same = samePosition(state.position, this.options.store.position);
    if (same && (isNewProcess || this.pusher.isDown)) this.applied(state, 0);
    if (!same || this.pusher.isDown) this.pusher.reconcile(state.position);
  }

  async polled(): Promise<void> {
    this.pushLifts();
    await this.retryUnapplied();
  }

  private noteLifts(lifts: readonly OwnBanLift[]): void {
    for (const lift of lifts) this.lifts.add(lift);
    for (const lift of this.lifts) {
      if (this.lifts.size <= MAX_LIFTS) break;
      this.lifts.delete(lift);
    }
  }

  /** A change of nothing but lifts: the journal that Caddy reads does not have them. */
  private pushLifts(): void {
    if (this.lifts.size === 0 || !this.pusher.idle) return;
    const { dataPlane, store } = this.options;
    const { position } = store;
    const running = dataPlane.status?.bans?.position;
    if (running && this.isAhead(running)) return;
    this.pusher.enqueue({
      base: position,
      target: position,
      receivedAt: performance.now(),
      upserts: new Map(),
      removed: new Set(),
    });
  }

  /** Manual bans that found no room are tried again each minute. */
  private async retryUnapplied(): Promise<void> {
    if (this.unapplied === 0n || !this.pusher.idle || performance.now() - this.lastRetry < RETRY_UNAPPLIED_MS) return;
    this.lastRetry = performance.now();
    this.applied(banState(await this.options.dataPlane.client.retryBans()), 0);
  }

  private applied(state: BanState, micros: number): void {
    this.options.dataPlane.accepted(this);
    this.unapplied = state.unapplied;
    this.options.applied(state, micros);
  }

  /** A journal that lost its end, or was set aside, is no reason to take back what Caddy runs. */
  private isAhead(position: BanPosition): boolean {
    const { store } = this.options;
    const stored = store.position;
    if (stored.epoch === 0n) return position.epoch > 0n && !store.isOfAnotherCluster;
    return position.epoch === stored.epoch && position.sequence > stored.sequence;
  }
}

function samePosition(left: BanPosition, right: BanPosition): boolean {
  return left.epoch === right.epoch && left.sequence === right.sequence;
}

function banPush(
  base: BanPosition,
  change: Pick<BanFeedChange, 'target' | 'upserts' | 'removedIds'>,
  receivedAt: number,
): BanPush {
  return {
    base,
    target: change.target,
    receivedAt,
    upserts: new Map(change.upserts.map((row) => [row.id, row])),
    removed: new Set(change.removedIds),
  };
}

function banState(answer: { state?: BanState | undefined }): BanState {
  if (!answer.state?.position) throw new Error('the data plane returned no ban position');
  return answer.state;
}

function mergeBans(changes: readonly BanPush[]): BanPush {
  const merged: BanPush = {
    base: changes[0]!.base,
    target: changes.at(-1)!.target,
    receivedAt: changes[0]!.receivedAt,
    upserts: new Map(),
    removed: new Set(),
  };
  for (const change of changes) {
    for (const id of change.removed) {
      merged.upserts.delete(id);
      merged.removed.add(id);
    }
    for (const [id, row] of change.upserts) {
      merged.removed.delete(id);
      merged.upserts.set(id, row);
    }
  }
  return merged;
}
