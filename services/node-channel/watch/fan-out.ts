// Hands what arrives on the fan-out streams to the feeds of the clusters that have nodes here. Losing anything is
// harmless: heads are compared with PostgreSQL every 2 s.
import { FanoutReader, type ReadBatch } from '../../../runtime/fanout-stream.ts';
import type { Feed } from '../../../runtime/feeds.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { fanoutStream } from '../../../runtime/stream-names.ts';
import { appendBatch } from './append.ts';
import { CANARY, type ClusterFeed, CONFIG } from './cluster-feed.ts';

interface Followed {
  cluster: ClusterFeed;
  feed: Feed;
  epoch: bigint;
}

export class FanOut {
  readonly #runtime: Runtime;
  readonly #reader: FanoutReader;
  readonly #onGap: (cluster: ClusterFeed, feed: Feed) => void;
  readonly #onCanary: () => void;
  readonly #followed = new Map<string, Followed>();

  /**
   * `onGap`: a batch is known to exist and its bytes are not there. `onCanary`: one began, or the one that runs may have
   * ended, which a look at the heads tells.
   */
  constructor(runtime: Runtime, onGap: (cluster: ClusterFeed, feed: Feed) => void, onCanary: () => void) {
    this.#runtime = runtime;
    this.#onGap = onGap;
    this.#onCanary = onCanary;
    this.#reader = new FanoutReader(runtime, { onBatches: (stream, batches) => this.#deliver(stream, batches) });
  }

  /** Whether batches can arrive at all. */
  get healthy(): boolean {
    return this.#runtime.redis.status === 'ready';
  }

  start(): void {
    this.#reader.start();
  }

  stop(): Promise<void> {
    return this.#reader.stop();
  }

  /** Follows the cluster's streams from its heads on; again after a head was taken from elsewhere. */
  follow(cluster: ClusterFeed): void {
    const { env, feeds } = this.#runtime;
    for (const [name, { epoch, ring }] of cluster.tracks) {
      const feed = feeds.get(name);
      const stream = fanoutStream(env.redisPrefix, cluster.clusterId, name, epoch);
      this.#dropOthers(cluster, feed, stream);
      this.#followed.set(stream, { cluster, feed, epoch });
      this.#reader.follow(stream, ring.head);
    }
  }

  unfollow(cluster: ClusterFeed): void {
    for (const name of cluster.tracks.keys()) this.#dropOthers(cluster, this.#runtime.feeds.get(name), null);
  }

  /** Streams of this feed's earlier epochs. */
  #dropOthers(cluster: ClusterFeed, feed: Feed, kept: string | null): void {
    for (const [stream, followed] of this.#followed) {
      if (followed.cluster !== cluster || followed.feed !== feed || stream === kept) continue;
      this.#followed.delete(stream);
      this.#reader.unfollow(stream);
    }
  }

  #deliver(stream: string, batches: readonly ReadBatch[]): void {
    const followed = this.#followed.get(stream);
    if (!followed) return;
    const { cluster, feed, epoch } = followed;
    if (cluster.tracks.get(feed.name)?.epoch !== epoch) return;
    if (feed.name === (cluster.hasCanary ? CONFIG : CANARY)) this.#onCanary();
    if (feed.name === CANARY && !cluster.hasCanary) return;
    try {
      for (const batch of batches) if (!append(cluster, feed, batch)) this.#onGap(cluster, feed);
    } catch (err) {
      this.#runtime.log.error({ err, stream }, 'unreadable batch in fan-out stream');
      this.#onGap(cluster, feed);
    }
    cluster.wake();
  }
}

/** False where the batch leaves a gap: a mark carries only the position, Redis may have lost bytes or batches before. */
function append(cluster: ClusterFeed, feed: Feed, { from, to, bytes }: ReadBatch): boolean {
  const { ring } = cluster.tracks.get(feed.name)!;
  if (to <= ring.head) return true;
  if (bytes === null || from === to || from > ring.head) return false;
  appendBatch(cluster, feed, { from, to, bytes });
  return true;
}
