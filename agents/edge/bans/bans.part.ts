// The console's bans: their journal, the feed, and the way into the data plane.
import { create } from '@bufbuild/protobuf';
import type { BanState } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { BanStatusSchema, type OwnBanLift } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { DataPlane } from '../caddy/data-plane.ts';
import type { AgentEvent } from '../lib/agent-event.ts';
import type { NodeReport } from '../lib/node-report.ts';
import type { EdgeNode, Part, PartKind } from '../lib/part.ts';
import { clockPart } from '../run/clock.part.ts';
import { BanFeed } from './ban-feed.ts';
import { BanPusher } from './ban-pusher.ts';
import { BanStore } from './ban-store.ts';
import { LostBanReport } from './lost-ban-report.ts';

const MAX_UNAPPLIED = 100;

export const bansPart: PartKind<BansPart> = {
  name: 'bans',
  make: (node, dataPlane) => new BansPart(node, dataPlane),
};

class BansPart implements Part {
  readonly store: BanStore;
  private readonly capacity: number;
  private readonly feed: BanFeed;
  private readonly pusher: BanPusher;
  private readonly lost: LostBanReport;
  private state: BanState | undefined;

  constructor(node: EdgeNode, dataPlane: DataPlane) {
    const { log, options } = node;
    const { nodeId, clusterId } = options.identity;
    this.capacity = options.banCapacity;
    this.store = BanStore.open({ path: options.paths.banJournal, nodeId, clusterId, log });
    this.pusher = new BanPusher({
      dataPlane,
      store: this.store,
      log,
      applied: (state, micros) => {
        this.state = state;
        const position = state.position!;
        node.tell({
          case: 'reached',
          feed: 'bans',
          epoch: position.epoch,
          number: position.sequence,
          urgent: false,
          write: (request, bansSteps) =>
            Object.assign(request, { bans: position, bansMicros: BigInt(micros), bansSteps }),
        });
        node.reportSoon();
      },
    });
    const { clock } = node.of(clockPart);
    this.lost = new LostBanReport({
      path: options.paths.lostBans,
      clusterId,
      store: this.store,
      clock,
      log,
      channel: node.reached,
    });
    this.feed = new BanFeed({
      store: this.store,
      clock,
      log,
      channel: node.channel,
      replacing: (epoch, kept) => this.lost.note(epoch, kept),
      changed: (change, receivedAt) => {
        this.pusher.push(change, receivedAt);
        const { globalCidrs, liftedOwn } = change;
        node.tell({ case: 'bansChanged', globalCidrs, liftedOwn });
      },
      replaced: () => {
        this.pusher.reload();
        node.tell({ case: 'bansChanged', globalCidrs: undefined, liftedOwn: [] });
      },
    });
    log.info('bans read', { nodeId, sequence: this.store.position.sequence, bans: this.store.size });
  }

  /** Lifts own bans that the data plane may hold again. */
  liftOwn(lifts: readonly OwnBanLift[]): void {
    this.pusher.liftOwn(lifts);
  }

  status(report: NodeReport): void {
    const { store, feed, state } = this;
    report.heartbeat.bans = create(BanStatusSchema, {
      ...(state?.position ? { position: state.position } : {}),
      entries: state?.entries ?? 0n,
      capacity: state?.capacity ?? BigInt(this.capacity),
      unappliedIds: state?.unappliedIds.slice(0, MAX_UNAPPLIED) ?? [],
      unapplied: state?.unapplied ?? 0n,
      autoEvicted: state?.autoEvicted ?? 0n,
    });
    if (store.position.epoch > 0n) report.positions.bans = store.position;
    report.shown.bans = {
      epoch: store.position.epoch.toString(),
      sequence: store.position.sequence.toString(),
      appliedSequence: (state?.position?.sequence ?? 0n).toString(),
      entries: store.size,
      unapplied: Number(state?.unapplied ?? 0n),
    };
    report.problem('following', feed.message);
    report.problem('following', store.problem);
  }

  event(event: AgentEvent): void {
    if (event.case === 'banBatch') this.feed.onBatch(event.value, event.receivedAt);
    else if (event.case === 'target' && event.value.bans) this.feed.onTarget(event.value.bans);
    else if (event.case === 'connected') {
      this.feed.onConnected();
      this.lost.onConnected();
    }
  }

  maintain(): Promise<void> {
    return this.store.maintain();
  }

  async stop(): Promise<void> {
    await Promise.all([this.feed.stop(), this.lost.stop()]);
  }

  close(): Promise<void> {
    return this.store.close();
  }
}
