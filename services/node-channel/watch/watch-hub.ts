// All Watch streams of the process: opens them, feeds them, and keeps the feeds true to PostgreSQL.
import type { PositionReport } from '../../../runtime/feed-wire.ts';
import type { Feed, FeedSource } from '../../../runtime/feeds.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { NodeIdentity } from '../identity.ts';
import type { Propagation } from '../propagation.ts';
import { catchUp } from './catch-up.ts';
import { ClusterFeed } from './cluster-feed.ts';
import { FanOut } from './fan-out.ts';
import { eventFrame } from './frames.ts';
import { readHeads } from './heads.ts';
import { type Sink, WatchStream } from './watch-stream.ts';

const COMPARE_MS = 2_000;
const PING_MS = 15_000;
/** A connection that takes nothing for this long is closed. */
const STALL_MS = 30_000;
/** Feeds without streams are kept this long: their nodes come back. */
const IDLE_FEED_MS = 60_000;
/** More than one stream of a node means that older ones are dead; the newest wins. */
export const REPLACED = { code: 'aborted', message: 'the node opened another stream' };
/** The node was disabled or deleted, or its certificate replaced. */
export const REFUSED = { code: 'unauthenticated', message: 'the node is no longer accepted' };

export class WatchHub {
  readonly #runtime: Runtime;
  readonly #feeds = new Map<string, ClusterFeed>();
  /** By the feed's name. */
  readonly #sources: ReadonlyMap<string, FeedSource>;
  readonly #opening = new Map<string, Promise<ClusterFeed | null>>();
  readonly #byNode = new Map<string, WatchStream>();
  readonly #idleSince = new Map<string, number>();
  readonly #fanOut: FanOut;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #catchingUp = new Map<string, Promise<void>>();
  readonly #onGone: (nodeId: string) => void;
  readonly #propagation: Propagation | undefined;
  #comparing: Promise<void> | null = null;

  /** `onGone`: a node has no stream here any more. */
  constructor(runtime: Runtime, onGone: (nodeId: string) => void = () => undefined, propagation?: Propagation) {
    this.#runtime = runtime;
    this.#onGone = onGone;
    this.#propagation = propagation;
    this.#sources = new Map([...runtime.feeds].map((feed) => [feed.name, feed.source(runtime)]));
    this.#fanOut = new FanOut(
      runtime,
      (cluster, feed) => void this.#catchUp(cluster, feed),
      // What is compared now may have been read before.
      () => void (this.#comparing ?? Promise.resolve()).then(() => this.compare()),
    );
  }

  get streamCount(): number {
    return this.#byNode.size;
  }

  start(): void {
    this.#fanOut.start();
    this.#timers.push(
      setInterval(() => this.compare(), COMPARE_MS),
      setInterval(() => this.#ping(), PING_MS),
    );
  }

  /** Ends every stream; nodes connect elsewhere. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const stream of this.#byNode.values()) stream.end({ code: 'unavailable', message: 'the console is stopping' });
    await this.#fanOut.stop();
    await this.#comparing;
    await Promise.all(this.#catchingUp.values());
  }

  /** Starts a stream on the sink; null when the node's cluster is gone. */
  async open(node: NodeIdentity, sink: Sink, start: PositionReport): Promise<WatchStream | null> {
    const feed = await this.feed(node.clusterId);
    if (!feed) return null;
    const stream = new WatchStream(node, sink, feed, start);
    // Gone while the cluster was read: nothing would tell that it closes.
    if (sink.destroyed) {
      stream.abandon();
      return stream;
    }
    this.#byNode.get(node.nodeId)?.end(REPLACED);
    this.#byNode.set(node.nodeId, stream);
    feed.streams.add(stream);
    this.#propagation?.joined(node.nodeId, node.clusterId);
    this.#idleSince.delete(feed.clusterId);
    sink.once('close', () => this.#forget(stream, feed));
    stream.pump();
    return stream;
  }

  /** The feed of a cluster, made at first need; null when there is no such cluster. */
  async feed(clusterId: string): Promise<ClusterFeed | null> {
    const known = this.#feeds.get(clusterId);
    if (known) return known;
    let opening = this.#opening.get(clusterId);
    if (!opening) {
      opening = this.#openFeed(clusterId).finally(() => this.#opening.delete(clusterId));
      this.#opening.set(clusterId, opening);
    }
    return opening;
  }

  async #openFeed(clusterId: string): Promise<ClusterFeed | null> {
    const heads = (await readHeads(this.#runtime.pools, this.#sources, [clusterId])).get(clusterId);
    if (!heads) return null;
    const feed = new ClusterFeed(clusterId, heads, this.#runtime.feeds, this.#propagation);
    this.#feeds.set(clusterId, feed);
    this.#idleSince.set(clusterId, Date.now());
    this.#fanOut.follow(feed);
    return feed;
  }

  /** Nodes with an open stream. */
  *nodes(): Generator<NodeIdentity> {
    for (const stream of this.#byNode.values()) yield stream.node;
  }

  /** Open streams: their nodes, with what they are sent from. */
  *streams(): Generator<{ node: NodeIdentity; cluster: ClusterFeed }> {
    for (const cluster of this.#feeds.values()) for (const { node } of cluster.streams) yield { node, cluster };
  }

  /** The streams whose node passes the test end with the reason. */
  endWhere(test: (node: NodeIdentity) => boolean, reason: { code: string; message: string }): void {
    for (const stream of this.#byNode.values()) if (test(stream.node)) stream.end(reason);
  }

  /** Writes a frame to the node if it has a stream here; one that takes nothing at the moment goes without. */
  tell(nodeId: string, frame: Buffer): void {
    this.#byNode.get(nodeId)?.writeNow(frame);
  }

  /** Writes a frame to the nodes of a cluster that have a stream here; `frameOf` gets how many there are. */
  tellCluster(clusterId: string, frameOf: (nodes: number) => Buffer): void {
    const streams = this.#feeds.get(clusterId)?.streams;
    if (!streams || streams.size === 0) return;
    const frame = frameOf(streams.size);
    for (const stream of streams) stream.writeNow(frame);
  }

  /** The node's capabilities changed: what it may receive did, too. */
  retarget(nodeId: string): void {
    const stream = this.#byNode.get(nodeId);
    stream?.demandTarget();
    stream?.pump();
  }

  /** Compares the feeds with PostgreSQL; one comparison at a time. */
  async compare(): Promise<void> {
    this.#comparing ??= this.#compareOnce().finally(() => {
      this.#comparing = null;
    });
    return this.#comparing;
  }

  async #compareOnce(): Promise<void> {
    try {
      this.#endStalled();
      this.#dropIdleFeeds();
      const clusterIds = [...this.#feeds.keys()];
      if (clusterIds.length === 0) return;
      const places = new Map([...this.#feeds].map(([clusterId, feed]) => [clusterId, feed.places()]));
      const heads = await readHeads(this.#runtime.pools, this.#sources, clusterIds);
      const impatient = !this.#fanOut.healthy;
      for (const [clusterId, feed] of this.#feeds) {
        const current = heads.get(clusterId);
        if (!current) continue;
        const found = feed.compare(current, impatient, places.get(clusterId));
        if ([...found.values()].includes('restarted')) this.#fanOut.follow(feed);
        for (const [name, state] of found) {
          if (state === 'behind') await this.#catchUp(feed, this.#runtime.feeds.get(name));
        }
      }
    } catch (err) {
      this.#runtime.log.warn({ err }, 'comparison of feeds with the database failed');
    }
  }

  /** Once at a time for each feed: a gap is often noticed twice. */
  async #catchUp(cluster: ClusterFeed, feed: Feed): Promise<void> {
    const { clusterId } = cluster;
    const key = `${feed.name} ${clusterId}`;
    let running = this.#catchingUp.get(key);
    if (!running) {
      running = catchUp(this.#runtime.pools.channel, cluster, feed, this.#sources.get(feed.name)!)
        .catch((err) => this.#runtime.log.warn({ err, clusterId, feed: feed.name }, 'catch-up of a feed failed'))
        .finally(() => this.#catchingUp.delete(key));
      this.#catchingUp.set(key, running);
    }
    await running;
  }

  #endStalled(): void {
    const before = Date.now() - STALL_MS;
    for (const stream of this.#byNode.values()) {
      if (stream.blockedSince === null || stream.blockedSince > before) continue;
      this.#runtime.log.info({ nodeId: stream.node.nodeId }, 'node does not read its stream');
      stream.end({ code: 'resource_exhausted', message: 'the node does not read' });
    }
  }

  #dropIdleFeeds(): void {
    const before = Date.now() - IDLE_FEED_MS;
    for (const [clusterId, since] of this.#idleSince) {
      if (since > before) continue;
      this.#idleSince.delete(clusterId);
      const feed = this.#feeds.get(clusterId);
      if (!feed || feed.streams.size > 0) continue;
      this.#feeds.delete(clusterId);
      this.#fanOut.unfollow(feed);
    }
  }

  #ping(): void {
    const frame = eventFrame({
      case: 'ping',
      value: { $typeName: 'svc.node.v1.Ping', serverTimeMs: BigInt(Date.now()) },
    });
    for (const stream of this.#byNode.values()) stream.writeNow(frame);
  }

  #forget(stream: WatchStream, feed: ClusterFeed): void {
    stream.abandon();
    feed.streams.delete(stream);
    if (feed.streams.size === 0) this.#idleSince.set(feed.clusterId, Date.now());
    const { nodeId } = stream.node;
    if (this.#byNode.get(nodeId) !== stream) return;
    this.#byNode.delete(nodeId);
    this.#propagation?.left(nodeId);
    this.#onGone(nodeId);
  }
}
