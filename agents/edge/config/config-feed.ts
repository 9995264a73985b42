// Follows the cluster's configuration: takes pushed deltas over by the rules of delta-rules.ts and pulls what it cannot
// follow.
//
//   what is wrong                                asked of the console            then
//   behind, base of this history                 GetConfig(base)                 delta
//   base not valid, another history, or drift    GetConfig(bucket sums)          differing buckets, then delta
//   nothing stored, or repair did not add up     GetConfig()                     snapshot in pages, swap, then delta
//
// An entry that needs a capability this node lacks is taken like any other: to the data plane it is lacking.
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  type ConfigDelta,
  type ConfigPage,
  type ConfigPosition,
  ConfigPositionSchema,
  type ConfigRepair,
  type GetConfigResponse,
} from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { ConfigChange, ConfigStore } from './config-store.ts';
import { judgeDelta } from './delta-rules.ts';
import { entryKey } from './entry.ts';
import type { Snapshot } from './snapshot.ts';

/** A push usually overtakes the pull that a heartbeat's answer would cause. */
const GRACE_MS = 200;
const MAX_HELD_DELTAS = 256;
const MAX_PAGES = 100_000;
const FULL_SET_INTERVAL_MS = 10 * 60_000;
/** A repair above this many entries is read by Caddy from the journal instead of being pushed. */
const PUSH_MAX_ENTRIES = 20_000;

export interface ConfigFeedOptions {
  store: ConfigStore;
  log: Log;
  /** The channel while there is one. */
  channel: () => NodeChannel | undefined;
  /** A change is in the journal; it followed `base`. */
  changed: (base: ConfigPosition, change: ConfigChange, receivedAt: number) => void;
  /** The journal was replaced or changed too much to be pushed. */
  replaced: (receivedAt: number) => void;
}

export class ConfigFeed {
  private readonly options: ConfigFeedOptions;
  private readonly store: ConfigStore;
  private readonly log: Log;
  private readonly loop: PullLoop;
  private waiting: { delta: ConfigDelta; receivedAt: number }[] = [];
  private wanted: ConfigPosition | undefined;
  private baseInvalid = false;
  private fullSetWanted = false;
  private lastFullSet = Number.NEGATIVE_INFINITY;
  private resume: { snapshot: Snapshot; checkpoint: ConfigPosition; pageToken: string } | undefined;
  private lacking: readonly string[] = [];

  constructor(options: ConfigFeedOptions) {
    this.options = options;
    this.store = options.store;
    this.log = options.log;
    this.baseInvalid = options.store.hasDrifted;
    this.loop = new PullLoop({
      name: 'config',
      log: options.log,
      pull: (signal) => this.pull(signal),
      settled: () => this.takeWaiting(),
    });
  }

  /** Whether a pull is under way; pushed changes wait meanwhile. */
  get pulling(): boolean {
    return this.loop.busy;
  }

  /** Why the node does not follow its target; "" when it does. */
  get message(): string {
    return this.loop.problem === '' ? '' : `configuration not fetched: ${this.loop.problem}`;
  }

  /** What the node can follow deltas from; undefined when it holds nothing or something else than it should. */
  get base(): ConfigPosition | undefined {
    return this.baseInvalid || this.store.position.revision === 0n ? undefined : this.store.position;
  }

  onDelta(delta: ConfigDelta, receivedAt: number): void {
    if (!this.loop.busy) this.take(delta, receivedAt);
    else if (this.waiting.length < MAX_HELD_DELTAS) this.waiting.push({ delta, receivedAt });
    else this.want(positionOf(delta));
  }

  /** What the console says the node should run. */
  onTarget(target: ConfigPosition): void {
    const mine = this.store.position;
    // Numbers grow over all tracks: what is told late is known by its own.
    if (target.epoch === mine.epoch && target.revision <= mine.revision) {
      if (target.revision < mine.revision) return;
      if (target.track === mine.track) {
        if (mine.revision > 0n && target.setHash.length > 0 && !sameHash(target.setHash, mine.setHash))
          this.startRepair('hash');
        return;
      }
    }
    this.want(target);
    this.loop.request(mine.revision === 0n ? 0 : GRACE_MS);
  }

  /** Capabilities that entries of the cluster need and the node lacks, as the console says. */
  get missing(): readonly string[] {
    return this.lacking;
  }

  onMissingFeatures(missing: readonly string[]): void {
    const before = this.lacking;
    this.lacking = [...missing].sort();
    if (missing.length > 0 && this.lacking.join() !== before.join())
      this.log.error('upgrade required: node lacks a capability, entries not applied', {
        missing: this.lacking,
      });
  }

  /** A new connection: do not wait for the back-off of the old one. */
  onConnected(): void {
    this.loop.hurry();
  }

  /** The table does not add up to its hash. */
  startRepair(reason: string): void {
    if (this.baseInvalid) return;
    this.log.warn('configuration differs from the console, agent requests a repair', {
      reason,
      revision: this.store.position.revision,
    });
    this.baseInvalid = true;
    this.loop.request();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
    this.dropResume();
  }

  private want(target: ConfigPosition): void {
    const { wanted } = this;
    if (wanted?.epoch !== target.epoch || wanted.track !== target.track || wanted.revision < target.revision) {
      this.wanted = target;
    }
  }

  private isBehind(): boolean {
    const { position } = this.store;
    const { wanted } = this;
    if (this.baseInvalid) return true;
    return (
      wanted !== undefined &&
      (wanted.epoch !== position.epoch || wanted.track !== position.track || wanted.revision > position.revision)
    );
  }

  private take(delta: ConfigDelta, receivedAt: number): void {
    if (delta.revision === 0n) return;
    const verdict = this.baseInvalid ? 'pull' : judgeDelta(this.store.position, delta);
    if (verdict === 'ignore') return;
    if (verdict === 'apply' && this.applyDelta(delta, receivedAt)) return;
    this.want(positionOf(delta));
    this.loop.request();
  }

  private takeWaiting(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const { delta, receivedAt } of waiting) this.onDelta(delta, receivedAt);
    if (!this.loop.busy && this.options.channel() && this.isBehind()) this.loop.request(GRACE_MS);
  }

  /** False when the delta cannot be taken over as it is. */
  private applyDelta(delta: ConfigDelta, receivedAt: number): boolean {
    if (!sameHash(this.store.hashAfter(delta.upserts, delta.deletes), delta.setHash)) {
      this.startRepair('delta');
      return false;
    }
    const base = this.store.position;
    const change = this.store.apply({ position: positionOf(delta), upserts: delta.upserts, deletes: delta.deletes });
    this.options.changed(base, change, receivedAt);
    return true;
  }

  private async pull(signal: AbortSignal): Promise<boolean> {
    const channel = this.options.channel();
    if (!channel) return false;
    const receivedAt = performance.now();
    if (this.resume) return this.pullSnapshot(channel, signal, receivedAt);
    const base = this.store.position;
    const otherHistory = this.wanted !== undefined && base.epoch !== 0n && this.wanted.epoch !== base.epoch;
    const repairing =
      this.store.size > 0 && !this.fullSetWanted && (this.baseInvalid || base.revision === 0n || otherHistory);
    if (this.fullSetWanted && performance.now() - this.lastFullSet < FULL_SET_INTERVAL_MS) {
      throw new Error('the configuration hash differs after a repair; the next full transfer is delayed');
    }
    let request = {};
    if (repairing) request = { bucketSums: this.store.bucketSums() };
    else if (!this.fullSetWanted && base.revision > 0n) request = { base };
    const { result } = await this.get(channel, request, signal);
    switch (result.case) {
      case 'delta':
        return this.pulledDelta(result.value, receivedAt);
      case 'repair':
        return this.pulledRepair(result.value, receivedAt);
      case 'page':
        if (this.store.size > 0 && !repairing && !this.fullSetWanted) {
          this.baseInvalid = true;
          return true;
        }
        return this.pullSnapshot(channel, signal, receivedAt, result.value);
      default:
        throw new Error('the console returned an empty response to GetConfig');
    }
  }

  private async get(
    channel: NodeChannel,
    request: Parameters<NodeChannel['getConfig']>[0],
    signal: AbortSignal,
  ): Promise<GetConfigResponse> {
    try {
      return await channel.getConfig(request, { signal });
    } catch (error) {
      // A console that does not know yet that entries can be lacking.
      if (error instanceof ConnectError && error.code === Code.FailedPrecondition)
        this.log.error('console rejects the configuration request of this node', { error });
      throw error;
    }
  }

  private pulledDelta(delta: ConfigDelta, receivedAt: number): boolean {
    if (delta.truncated) throw new Error('the console returned a truncated delta');
    const verdict = judgeDelta(this.store.position, delta);
    if (verdict === 'pull') {
      this.baseInvalid = true;
      return true;
    }
    if (verdict === 'apply') {
      if (!this.applyDelta(delta, receivedAt)) return true;
      // A long way is answered in several deltas.
      if (this.isBehind()) return true;
    }
    // The console's answer is the newest there is; a target seen before cannot be newer.
    this.wanted = undefined;
    return false;
  }

  private pulledRepair(repair: ConfigRepair, receivedAt: number): boolean {
    const position = checked(repair.checkpoint);
    const buckets = new Set(repair.buckets);
    const kept = new Set(repair.entries.map((entry) => entryKey(entry.kind, entry.id)));
    const deletes = this.store.keysToDelete(buckets, kept);
    if (!sameHash(this.store.hashAfter(repair.entries, deletes), position.setHash)) {
      this.log.warn('configuration hash differs after repair, agent requests a full transfer', {
        buckets: buckets.size,
      });
      this.fullSetWanted = true;
      return true;
    }
    const base = this.store.position;
    const change = this.store.apply({ position, upserts: repair.entries, deletes });
    this.baseInvalid = false;
    this.log.info('configuration repaired', {
      revision: position.revision,
      buckets: buckets.size,
      entries: kept.size,
      deletes: deletes.length,
    });
    if (kept.size + deletes.length <= PUSH_MAX_ENTRIES) this.options.changed(base, change, receivedAt);
    else this.options.replaced(receivedAt);
    return true;
  }

  private async pullSnapshot(
    channel: NodeChannel,
    signal: AbortSignal,
    receivedAt: number,
    first?: ConfigPage,
  ): Promise<boolean> {
    if (first) this.addPage(first);
    for (let pages = 0; this.resume && this.resume.pageToken !== ''; pages++) {
      if (pages > MAX_PAGES) throw new Error('the snapshot has no last page');
      let answer: GetConfigResponse;
      try {
        answer = await this.get(channel, { pageToken: this.resume.pageToken }, signal);
      } catch (error) {
        // Any other failure keeps the pages received; a token that is refused is worth nothing any more.
        if (error instanceof ConnectError && REFUSED.has(error.code)) this.dropResume();
        throw error;
      }
      if (answer.result.case !== 'page') {
        this.dropResume();
        throw new Error('the console returned a page of another snapshot');
      }
      this.addPage(answer.result.value);
    }
    if (!this.resume) return true;
    const { snapshot, checkpoint } = this.resume;
    this.resume = undefined;
    if (!(await this.store.replace(snapshot, checkpoint))) {
      this.fullSetWanted = true;
      throw new Error('the snapshot does not match its hash');
    }
    this.baseInvalid = false;
    this.fullSetWanted = false;
    this.log.info('configuration snapshot applied', { revision: checkpoint.revision, entries: this.store.size });
    this.options.replaced(receivedAt);
    return true;
  }

  /** A page of another checkpoint is the first of a new snapshot. */
  private addPage(page: ConfigPage): void {
    const checkpoint = checked(page.checkpoint);
    const before = this.resume?.checkpoint;
    if (
      before?.epoch !== checkpoint.epoch ||
      before.track !== checkpoint.track ||
      before.revision !== checkpoint.revision
    ) {
      this.dropResume();
      this.lastFullSet = performance.now();
      this.resume = { snapshot: this.store.startSnapshot(), checkpoint, pageToken: '' };
    }
    const resume = this.resume!;
    try {
      resume.snapshot.add(page.entries);
    } catch (error) {
      this.dropResume();
      throw error;
    }
    resume.pageToken = page.nextPageToken;
  }

  private dropResume(): void {
    this.resume?.snapshot.discard();
    this.resume = undefined;
  }
}

const REFUSED: ReadonlySet<Code> = new Set([
  Code.InvalidArgument,
  Code.NotFound,
  Code.FailedPrecondition,
  Code.OutOfRange,
  Code.Aborted,
]);

function positionOf(delta: ConfigDelta): ConfigPosition {
  const { epoch, track, revision, setHash, mark } = delta;
  return create(ConfigPositionSchema, { epoch, track, revision, setHash, mark });
}

function checked(position: ConfigPosition | undefined): ConfigPosition {
  if (!position || position.revision === 0n) throw new Error('the console returned no position');
  return position;
}

const ZERO_HASH = Buffer.alloc(32);

/** The hash of an empty set may travel as no bytes. */
function sameHash(left: Uint8Array, right: Uint8Array): boolean {
  const bytes = (hash: Uint8Array): Uint8Array => (hash.length === 0 ? ZERO_HASH : hash);
  return Buffer.compare(bytes(left), bytes(right)) === 0;
}
