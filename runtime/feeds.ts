// Feeds: what changes in numbered steps and reaches nodes as batches that are encoded once per cluster. A service folder
// registers its feed in `<name>.feed.ts`; relay, owners, streams, statistics and the node channel know feeds from there.
import type { LiveTopic } from '../contract/resources/live.ts';
import type { FanoutBatch } from './fanout-stream.ts';
import { LOCK_CLASS } from './lock-session.ts';
import type { Runtime } from './runtime.ts';

export interface FeedTarget {
  epoch: bigint;
  position: bigint;
}

/** What PostgreSQL holds of a feed, as batches. */
export interface FeedSource {
  /** Where the clusters (all without ids) should be. */
  targets(clusterIds?: readonly string[]): Promise<Map<string, FeedTarget>>;
  /** The next batch after `from` on the way to the target; null when there is none. */
  read(clusterId: string, from: bigint, target: FeedTarget): Promise<FanoutBatch | null>;
  /** A batch that carries nothing and says where the feed is. */
  mark(target: FeedTarget): Uint8Array;
}

/** A feed as its folder registers it. Names, topics and locks are those of one feed only. */
export interface Feed {
  /** In streams, metrics, statistics and logs. */
  readonly name: string;
  /** Of its rows in the outbox: written in the transaction of a change, with the cluster's id or `*` as key. */
  readonly topic: string;
  /** First key of the advisory locks that its owners hold, "SV" and a number: the same in every version. */
  readonly ownerLock: number;
  /**
   * Field of WatchEvent that carries a batch to nodes; null for a feed that their streams do not carry. Feeds of which a
   * node gets one share it.
   */
  readonly event: number | null;
  /** What open pages of the Web UI are told to read again. */
  readonly hint: LiveTopic | null;
  /**
   * SQL of the changes of a batch `b` ("clusterId", epoch, "from", "to"): number, at, cluster_id and `before`, the time of
   * the change before it. How long they take to reach nodes is measured by it; null: not measured.
   */
  readonly changes: string | null;
  /** Reads through the pool of its choice. */
  source(runtime: Runtime): FeedSource;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** The feeds of a process. */
export class Feeds implements Iterable<Feed> {
  readonly #byName: ReadonlyMap<string, Feed>;
  readonly #byTopic: ReadonlyMap<string, Feed>;

  /** Throws on a name that is none, and where two feeds share what is to be one's own. */
  constructor(feeds: readonly Feed[]) {
    for (const { name } of feeds) if (!NAME.test(name)) throw new Error(`not a name of a feed: ${name}`);
    this.#byName = distinct(feeds, 'name');
    this.#byTopic = distinct(feeds, 'topic');
    if (distinct(feeds, 'ownerLock').has(LOCK_CLASS.job)) throw new Error('a feed takes the lock of the jobs');
  }

  /** Undefined for a topic that no feed here has: of a later version. */
  ofTopic(topic: string): Feed | undefined {
    return this.#byTopic.get(topic);
  }

  get topics(): string[] {
    return [...this.#byTopic.keys()];
  }

  /** Throws for a name that no feed has. */
  get(name: string): Feed {
    const feed = this.#byName.get(name);
    if (!feed) throw new Error(`the feed ${name} does not exist`);
    return feed;
  }

  [Symbol.iterator](): Iterator<Feed> {
    return this.#byName.values();
  }
}

function distinct<K extends 'name' | 'topic' | 'ownerLock'>(feeds: readonly Feed[], field: K): Map<Feed[K], Feed> {
  const found = new Map<Feed[K], Feed>();
  for (const feed of feeds) {
    const other = found.get(feed[field]);
    if (other) throw new Error(`the feeds ${other.name} and ${feed.name} have the same ${field}`);
    found.set(feed[field], feed);
  }
  return found;
}
