// What the streams of one cluster read from: the rings of its feeds and where their heads are.
import { create } from '@bufbuild/protobuf';
import type { Capability } from '../../../contract/capabilities.ts';
import { type ConfigPosition, ConfigPositionSchema, Track } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { type Target, TargetSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { Feed, Feeds, FeedTarget } from '../../../runtime/feeds.ts';
import type { NodeIdentity } from '../identity.ts';
import type { Propagation } from '../propagation.ts';
import { eventFrame } from './frames.ts';
import { Ring, type RingBatch } from './ring.ts';
import type { WatchStream } from './watch-stream.ts';

/** Each ring of a cluster stays below this per process. */
const RING_LIMITS = { bytes: 2 * 1024 * 1024, ageMs: 10 * 60_000 };

const HOLDS_ENTRIES: Capability = 'partial-config-v1';

/** What the nodes of a canary should run, and who they are. */
export interface CanaryHead {
  revision: bigint;
  setHash: Uint8Array;
  /** Capabilities that its entries need. */
  features: ReadonlySet<string>;
  members: ReadonlySet<string>;
}

/** Heads as PostgreSQL has them. */
export interface ClusterHeads {
  config: { epoch: bigint; revision: bigint; setHash: Uint8Array };
  /** Every other feed, by name. */
  others: ReadonlyMap<string, FeedTarget>;
  /** Capabilities the cluster's live entries need. */
  features: ReadonlySet<string>;
  /** Null: no canary runs. */
  canary: CanaryHead | null;
  /** Version of its challenge keys; 0 = none. */
  keysVersion: bigint;
  /** The same of its keys of session tickets. */
  ticketKeysVersion: bigint;
}

/** One feed: its epoch and ring. A new epoch starts over. */
export class FeedTrack {
  epoch: bigint;
  ring: Ring;
  /** A head seen in PostgreSQL and not in Redis at the last look. */
  lagging: bigint | null = null;

  constructor(epoch: bigint, head: bigint) {
    this.epoch = epoch;
    this.ring = new Ring(head, RING_LIMITS);
  }

  /** Where a stream of a node at this position continues: there when the ring holds what follows, else at the head. */
  cursorFor(epoch: bigint | undefined, number: bigint | undefined): bigint {
    const { floor, head } = this.ring;
    const served = epoch === this.epoch && number !== undefined && number >= floor && number <= head;
    return served ? number : head;
  }

  /**
   * Compares with the head in PostgreSQL. A head ahead of the ring gets until the next look to arrive by Redis, unless
   * `impatient`. A new epoch starts over here, and so does a ring that was ahead before PostgreSQL was asked (`known`): it
   * has forgotten what it had. A ring that is behind is for the caller to bring forward.
   */
  compare(epoch: bigint, head: bigint, impatient: boolean, known = 0n): 'same' | 'behind' | 'restarted' {
    if (epoch !== this.epoch || head < known) {
      this.epoch = epoch;
      this.ring.clear(head);
      this.lagging = null;
      return 'restarted';
    }
    if (head <= this.ring.head) {
      this.lagging = null;
      return 'same';
    }
    if (!impatient && (this.lagging === null || this.ring.head >= this.lagging)) {
      this.lagging = head;
      return 'same';
    }
    this.lagging = null;
    return 'behind';
  }
}

/** The feed of a cluster's configuration. */
export const CONFIG = 'config';
/** What the nodes of a canary get instead of it. */
export const CANARY = 'canary';

const NOBODY: ReadonlySet<string> = new Set();

/** What a comparison with PostgreSQL found, by feed. */
export type Comparison = Map<string, 'same' | 'behind' | 'restarted'>;

export class ClusterFeed {
  readonly clusterId: string;
  /** By the feed's name, in the order their batches are sent: that of their lanes. */
  readonly tracks: ReadonlyMap<string, FeedTrack>;
  readonly streams = new Set<WatchStream>();
  #setHash: Uint8Array;
  #required: Set<string>;
  #keysVersion: bigint;
  #ticketKeysVersion: bigint;
  #canary: CanaryHead | null;
  readonly #targetFrames = new Map<string, { key: string; at: number; frame: Buffer }>();
  readonly #feeds: Feeds;
  readonly #propagation: Pick<Propagation, 'pushed'> | undefined;

  constructor(clusterId: string, heads: ClusterHeads, feeds: Feeds, propagation?: Pick<Propagation, 'pushed'>) {
    this.clusterId = clusterId;
    this.#feeds = feeds;
    this.#propagation = propagation;
    const others = [...heads.others].map(
      ([name, { epoch, position }]) => [name, new FeedTrack(epoch, position)] as const,
    );
    this.tracks = new Map([...others, [CONFIG, new FeedTrack(heads.config.epoch, heads.config.revision)]]);
    this.#setHash = heads.config.setHash;
    this.#required = new Set(heads.features);
    this.#keysVersion = heads.keysVersion;
    this.#ticketKeysVersion = heads.ticketKeysVersion;
    this.#canary = heads.canary;
  }

  /** Whether a canary runs, as far as this process knows. */
  get hasCanary(): boolean {
    return this.#canary !== null;
  }

  /** Name of the feed with the node's configuration. */
  configFeedOf({ nodeId }: Pick<NodeIdentity, 'nodeId'>): typeof CONFIG | typeof CANARY {
    return this.#canary?.members.has(nodeId) ? CANARY : CONFIG;
  }

  trackOf(node: Pick<NodeIdentity, 'nodeId'>): Track {
    return this.configFeedOf(node) === CANARY ? Track.CANARY : Track.STABLE;
  }

  get config(): FeedTrack {
    return this.tracks.get(CONFIG)!;
  }

  /** The feeds other than configurations that the node is sent. */
  *othersOf(node: Pick<NodeIdentity, 'features'>): Generator<{ feed: Feed; track: FeedTrack }> {
    for (const [name, track] of this.tracks) {
      const feed = this.#feeds.get(name);
      if (feed.wire.aim !== null && mayFollow(node, feed)) yield { feed, track };
    }
  }

  /** Whether the node is sent batches of the feed. */
  sends(name: string, node: NodeIdentity): boolean {
    const feed = this.#feeds.get(name);
    if (feed.wire.aim !== null) return mayFollow(node, feed);
    // A node that cannot hold single entries keeps its configuration; it is told the target all the same.
    return name === this.configFeedOf(node) && !this.isFrozen(node);
  }

  get ticketKeysVersion(): bigint {
    return this.#ticketKeysVersion;
  }

  get keysVersion(): bigint {
    return this.#keysVersion;
  }

  /** Call {@link wake} afterwards. */
  setKeysVersion(version: bigint): void {
    this.#keysVersion = version;
  }

  /** Where the track is, as far as this process knows; the stable one where no canary runs. */
  headOf(track: Track): ConfigPosition {
    const { epoch } = this.config;
    if (track !== Track.CANARY || !this.#canary) {
      const { head: revision } = this.config.ring;
      return create(ConfigPositionSchema, { epoch, track: Track.STABLE, revision, setHash: this.#setHash });
    }
    const { revision, setHash } = this.#canary;
    return create(ConfigPositionSchema, { epoch, track, revision, setHash });
  }

  /** What the node should have, as far as this process knows. */
  target(now: number, node: Pick<NodeIdentity, 'nodeId' | 'features'>): Target {
    const target = create(TargetSchema, { config: this.headOf(this.trackOf(node)), serverTimeMs: BigInt(now) });
    for (const { feed, track } of this.othersOf(node))
      feed.wire.aim?.(target, { epoch: track.epoch, sequence: track.ring.head });
    return target;
  }

  /** The Target as a frame; streams that start within a second share it. */
  targetFrame(node: NodeIdentity): Buffer {
    const config = this.headOf(this.trackOf(node));
    const others = [...this.othersOf(node)];
    const kind = [this.configFeedOf(node), ...others.map(({ feed }) => feed.name)].join();
    const places = others.map(({ track: { epoch, ring } }) => `${epoch}/${ring.head}`);
    const key = [config.epoch, config.revision, ...places].join('/');
    const now = Date.now();
    let known = this.#targetFrames.get(kind);
    if (known?.key !== key || now - known.at > 1000) {
      known = { key, at: now, frame: eventFrame({ case: 'target', value: this.target(now, node) }) };
      this.#targetFrames.set(kind, known);
    }
    return known.frame;
  }

  /** Capabilities that the cluster's configuration needs and the node lacks. */
  missingFeatures(node: NodeIdentity): string[] {
    return [...this.#requiredOf(node)].filter((feature) => !node.features.has(feature)).sort();
  }

  /** Whether the node may not be sent the configuration: it lacks something and cannot hold just what needs it. */
  isFrozen(node: NodeIdentity): boolean {
    if (node.features.has(HOLDS_ENTRIES)) return false;
    for (const feature of this.#requiredOf(node)) if (!node.features.has(feature)) return true;
    return false;
  }

  #requiredOf(node: NodeIdentity): ReadonlySet<string> {
    return this.configFeedOf(node) === CANARY ? this.#canary!.features : this.#required;
  }

  /** Call {@link wake} after the last of several batches. */
  appendConfig(batch: RingBatch, setHash: Uint8Array, features: Iterable<string>): void {
    // Known before the batch is sent: the first node that lacks one must not receive it.
    for (const feature of features) this.#required.add(feature);
    if (!this.config.ring.append(batch)) return;
    this.#setHash = setHash;
    this.#pushed(CONFIG, this.config, batch);
  }

  /** As {@link appendConfig}, for the nodes of the canary that runs. */
  appendCanary(batch: RingBatch, setHash: Uint8Array, features: Iterable<string>): void {
    if (!this.#canary || !this.tracks.get(CANARY)!.ring.append(batch)) return;
    const required = new Set([...this.#canary.features, ...features]);
    this.#canary = { ...this.#canary, revision: batch.to, setHash, features: required };
  }

  /** A batch of a feed other than the configuration. */
  append(name: string, batch: RingBatch): void {
    const track = this.tracks.get(name);
    if (track?.ring.append(batch)) this.#pushed(name, track, batch);
  }

  #pushed(name: string, { epoch }: FeedTrack, { from, to, at }: RingBatch): void {
    const exempt: string[] = [];
    const { aim, needs } = this.#feeds.get(name).wire;
    if (aim === null || needs !== null) {
      for (const { node } of this.streams) if (!this.sends(name, node)) exempt.push(node.nodeId);
    }
    this.#propagation?.pushed(this.clusterId, name, { epoch, from, to }, at, new Set(exempt));
  }

  /** Where the rings are; taken before PostgreSQL is asked, which was there before them. */
  places(): ReadonlyMap<string, bigint> {
    return new Map([...this.tracks].map(([name, { ring }]) => [name, ring.head]));
  }

  /**
   * Compares with PostgreSQL (`impatient`: Redis is away; `known`: the places before it was asked), and tells the streams
   * when a feed starts over or another capability is needed.
   */
  compare(heads: ClusterHeads, impatient: boolean, known: ReadonlyMap<string, bigint> = new Map()): Comparison {
    const before = [...this.#required].sort().join();
    const keysBefore = `${this.#keysVersion} ${this.#ticketKeysVersion}`;
    this.#ticketKeysVersion = heads.ticketKeysVersion;
    const comparison: Comparison = new Map();
    for (const [name, { epoch, position }] of heads.others) {
      const track = this.tracks.get(name);
      if (track && name !== CANARY) comparison.set(name, track.compare(epoch, position, impatient, known.get(name)));
    }
    const moved = this.#compareCanary(heads, comparison, impatient, known);
    const { epoch, revision } = heads.config;
    comparison.set(CONFIG, this.config.compare(epoch, revision, impatient, known.get(CONFIG)));
    // What batches said that this look is too old to know stays.
    if (revision >= this.config.ring.head) {
      this.#required = new Set(heads.features);
      this.#keysVersion = heads.keysVersion;
    }
    if (heads.config.epoch === this.config.epoch && heads.config.revision === this.config.ring.head) {
      this.#setHash = heads.config.setHash;
    }
    for (const { ring } of this.tracks.values()) ring.trim(Date.now());
    const restarted = [...comparison.values()].includes('restarted');
    if (restarted || before !== [...this.#required].sort().join()) {
      for (const stream of this.streams) stream.demandTarget();
      this.wake();
    } else {
      for (const stream of this.streams) if (moved.has(stream.node.nodeId)) stream.demandTarget();
      if (moved.size > 0 || keysBefore !== `${this.#keysVersion} ${this.#ticketKeysVersion}`) this.wake();
    }
    return comparison;
  }

  /** Answers the nodes whose configuration is another track's now. What began or ended meanwhile has no past here. */
  #compareCanary(
    { config: { epoch }, canary }: ClusterHeads,
    comparison: Comparison,
    impatient: boolean,
    known: ReadonlyMap<string, bigint>,
  ): ReadonlySet<string> {
    const track = this.tracks.get(CANARY);
    if (!track) return NOBODY;
    const before = this.#canary;
    if (before && canary) {
      comparison.set(CANARY, track.compare(epoch, canary.revision, impatient, known.get(CANARY)));
      if (canary.revision >= before.revision || track.ring.head === canary.revision) this.#canary = canary;
      return before.members.symmetricDifference(canary.members);
    }
    this.#canary = canary;
    if (!before && !canary) {
      track.epoch = epoch;
      return NOBODY;
    }
    const restarted = track.epoch !== epoch;
    track.epoch = epoch;
    track.ring.clear(canary?.revision ?? 0n);
    comparison.set(CANARY, restarted ? 'restarted' : 'same');
    return (canary ?? before!).members;
  }

  wake(): void {
    for (const stream of this.streams) stream.pump();
  }
}

function mayFollow({ features }: Pick<NodeIdentity, 'features'>, { wire: { needs } }: Feed): boolean {
  return needs === null || features.has(needs);
}
