// The agent's part in protection: keys for the data plane, own bans, events and levels from it, both kept on disk.
import type { GetStatusResponse, SecurityBatch } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { OwnBanLift } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { ChallengeKeys } from '../../../proto/gen/svc/node/v1/security_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { canonicalCidr } from '../bans/cidr.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import { CHALLENGE_KEYS } from '../keys/challenge-keys.ts';
import { SharedKeys } from '../keys/shared-keys.ts';
import { type Clock, machineClock } from '../lib/clock.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import { SkippedMessages } from '../lib/skipped-messages.ts';
import type { EdgePaths } from '../paths.ts';
import { writeOwnBan } from './own-ban.ts';
import { RecentLifts } from './recent-lifts.ts';
import { Reporters } from './reporters.ts';
import { SecurityJournal } from './security-journal.ts';
import type { Lift } from './security-state.ts';
import { SecurityWatch } from './security-watch.ts';

export interface ProtectionOptions {
  paths: Pick<EdgePaths, 'challengeKeys' | 'securityJournal'>;
  nodeId: string;
  clusterId: string;
  /** Most own bans kept. */
  capacity: number;
  client: EdgeClient;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** Whether the console answers. */
  isConnected: () => boolean;
  serverClock: ServerClock;
  clock?: Clock;
  /** These own global bans may have changed. */
  globalChanged: (cidrs: readonly string[]) => void;
  /** The data plane may hold own bans again that were lifted. */
  liftAgain: (lifts: readonly OwnBanLift[]) => void;
  /** The data plane may be gone. */
  check: () => void;
  /** What a heartbeat says changed. */
  changed: () => void;
  /** What people are shown changed. */
  shown: () => void;
}

/** What people are shown. */
export interface ProtectionView {
  keysVersion: string;
  ownBans: number;
  sitesAboveNormal: number;
  unreported: number;
  dropped: string;
}

export class Protection {
  private readonly options: ProtectionOptions;
  private readonly clock: Clock;
  private readonly journal: SecurityJournal;
  private readonly keys: SharedKeys<ChallengeKeys>;
  private readonly reporters: Reporters;
  private readonly recentLifts: RecentLifts;
  private readonly skipped: SkippedMessages;
  private stopped = false;
  private watch: { instanceId: string; stream: SecurityWatch } | undefined;
  /** Lifts that arrive while a new process is given the own bans of before. */
  private liftedMeanwhile: OwnBanLift[] | undefined;

  /** Reads keys and journal; throws when the disk cannot be used. */
  constructor(options: ProtectionOptions) {
    this.options = options;
    this.clock = options.clock ?? machineClock;
    const { paths, nodeId, clusterId, capacity, client, log, channel, serverClock, isConnected } = options;
    this.journal = SecurityJournal.open({
      path: paths.securityJournal,
      nodeId,
      clusterId,
      capacity,
      log,
      clock: this.clock,
    });
    this.recentLifts = new RecentLifts(this.clock);
    this.skipped = new SkippedMessages('attack reports from the data plane', log);
    this.keys = new SharedKeys(CHALLENGE_KEYS, {
      path: paths.challengeKeys,
      clusterId,
      client,
      log,
      channel,
      pushed: options.changed,
    });
    this.reporters = new Reporters({
      journal: this.journal,
      log,
      channel: () => (isConnected() ? channel() : undefined),
      serverClock,
      clock: this.clock,
    });
  }

  /** Version of the keys the data plane uses; 0 = none. */
  get keysVersion(): bigint {
    return this.keys.version;
  }

  /** The first thing that is wrong; "" when all is well. */
  get message(): string {
    const parts = [this.journal.problem, this.keys.message, this.watch?.stream.problem ?? '', this.skipped.message];
    return parts.find((part) => part !== '') ?? '';
  }

  get view(): ProtectionView {
    const { state } = this.journal;
    return {
      keysVersion: this.keysVersion.toString(),
      ownBans: state.liveBans().length,
      sitesAboveNormal: state.sites().length,
      unreported: state.waitingBans.length + state.waitingEvents.length,
      dropped: state.dropped.toString(),
    };
  }

  /** Own global bans in force, newest first. */
  globalCidrs(): string[] {
    const live = this.journal.state.liveBans().filter((row) => row.siteId === '');
    return live.map((row) => row.cidr).reverse();
  }

  /** Remaining ms of the own global ban of a CIDR; undefined when there is none. */
  globalRemainingMs(cidr: string): number | undefined {
    return this.journal.state.globalRemainingMs(cidr);
  }

  /** What Caddy says about itself. */
  onStatus(status: GetStatusResponse): void {
    this.keys.onStatus(status);
    const { instanceId } = status;
    // The data plane is asked until all else has stopped.
    if (this.stopped || this.watch?.instanceId === instanceId) return;
    void this.watch?.stream.stop();
    this.watch = { instanceId, stream: this.follow(instanceId) };
  }

  onConnected(): void {
    this.keys.onConnected();
    this.reporters.onConnected();
  }

  /** Version of the console's keys. */
  onKeysVersion(version: bigint): void {
    this.keys.onVersion(version);
  }

  /** Own bans were lifted at the console; times are by this machine's clock. */
  onLifts(lifts: readonly OwnBanLift[]): void {
    if (lifts.length === 0) return;
    this.liftedMeanwhile?.push(...lifts);
    const offset = this.clock.monotonic() - this.clock.wall();
    const read = lifts.map(({ siteId, cidr, expiresNoLaterThanMs }) => ({
      siteId,
      cidr: canonicalCidr(cidr),
      expiresNoLaterThan: Number(expiresNoLaterThanMs) + offset,
    }));
    this.recentLifts.add(read);
    this.lift(read);
  }

  maintain(): Promise<void> {
    return this.journal.maintain();
  }

  /** Stops talking; to be called before the channel and the client are closed for good. */
  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all([this.watch?.stream.stop(), this.keys.stop(), this.reporters.stop()]);
  }

  close(): Promise<void> {
    return this.journal.close();
  }

  private follow(instanceId: string): SecurityWatch {
    const { client, log, check } = this.options;
    const { journal } = this;
    return new SecurityWatch({
      client,
      instanceId,
      log,
      isRestored: journal.state.cursor.instanceId === instanceId,
      restore: () => this.restore(),
      stored: () => journal.acknowledgeable(instanceId),
      take: (batch) => this.take(instanceId, batch),
      skipped: (error) => this.skipped.note(error),
      broken: check,
    });
  }

  private async restore(): Promise<void> {
    const { state } = this.journal;
    const offset = this.clock.wall() - this.clock.monotonic();
    const bans = state.liveBans().map((row) => writeOwnBan(row, offset));
    const sites = state.sites();
    const lifted: OwnBanLift[] = [];
    this.liftedMeanwhile = lifted;
    try {
      await this.options.client.restoreSecurity({ bans, sites });
    } finally {
      this.liftedMeanwhile = undefined;
      this.options.liftAgain(lifted);
    }
    if (bans.length + sites.length > 0)
      this.options.log.info('data plane received its own bans and levels again', {
        bans: bans.length,
        sites: sites.length,
      });
  }

  private take(instanceId: string, batch: SecurityBatch): void {
    const globalCidrs = this.journal.takeBatch({ ...batch, instanceId });
    this.lift(this.recentLifts.meant(batch.bans));
    if (globalCidrs.length > 0) this.options.globalChanged(globalCidrs);
    this.reporters.soon();
    this.options.shown();
  }

  private lift(lifts: readonly Lift[]): void {
    const globalCidrs = this.journal.lift(lifts);
    if (lifts.length > 0) this.options.shown();
    if (globalCidrs.length > 0) this.options.globalChanged(globalCidrs);
  }
}
