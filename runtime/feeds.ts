// Feeds: what changes in numbered steps and reaches nodes as batches that are encoded once per cluster. A service folder
// registers its feed in `<name>.feed.ts`; relay, owners, streams, statistics and the node channel know feeds from there.
import type { LiveTopic } from '../contract/resources/live.ts';
import type { FanoutBatch } from './fanout-stream.ts';
import type { FeedWire } from './feed-wire.ts';
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

/** What a node lacks of a feed, a page at a time. */
export interface FeedPage {
  /** Reached with the last page. */
  place: FeedTarget;
  /** The pages take the place of everything that the node has: its own place is unknown, or beyond the horizon. */
  reset: boolean;
  body: Uint8Array;
  /** "" on the last page. */
  nextPageToken: string;
}

/** Returns what follows `after`; null: the node has nothing. Throws a RangeError for a page token that is none. */
export type FeedRepair = (clusterId: string, after: FeedTarget | null, pageToken: string) => Promise<FeedPage>;

/** Columns of node_state with the place of a feed that is older than the table node_feed. */
export interface FeedColumns {
  epoch: string;
  sequence: string;
  /** When it was reached. */
  at: string | null;
}

const LANES = ['urgent', 'regular', 'bulk'] as const;

/** A feed as its folder registers it. Names, topics and locks are those of one feed only. */
export interface Feed {
  /** In streams, metrics, statistics and logs. */
  readonly name: string;
  /** Of its rows in the outbox: written in the transaction of a change, with the cluster's id or `*` as key. */
  readonly topic: string;
  /** First key of the advisory locks that its owners hold, "SV" and a number: the same in every version. */
  readonly ownerLock: number;
  /** A batch is sent to a node once no feed of a lane before has one. What is not as urgent as bans is `regular`. */
  readonly lane: (typeof LANES)[number];
  /** How nodes hear of it. */
  readonly wire: FeedWire;
  /** Where the places of nodes are kept; null: in the table node_feed. */
  readonly columns: FeedColumns | null;
  /** What open pages of the Web UI are told to read again. */
  readonly hint: LiveTopic | null;
  /**
   * SQL of the changes of a batch `b` ("clusterId", epoch, "from", "to"): number, at, cluster_id and `before`, the time of
   * the change before it. How long they take to reach nodes is measured by it; null: not measured.
   */
  readonly changes: string | null;
  /** Reads through the pool of its choice. */
  source(runtime: Runtime): FeedSource;
  /** Answers GetFeed; null for a feed that nodes repair by a call of its own. */
  readonly repair: ((runtime: Runtime) => FeedRepair) | null;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** The feeds of a process, in the order of their lanes. */
export class Feeds implements Iterable<Feed> {
  readonly #byName: ReadonlyMap<string, Feed>;
  readonly #byTopic: ReadonlyMap<string, Feed>;

  /** Throws on a name that is none, and where two feeds share what is to be one's own. */
  constructor(feeds: readonly Feed[]) {
    for (const { name } of feeds) if (!NAME.test(name)) throw new Error(`not a name of a feed: ${name}`);
    const sorted = feeds.toSorted((a, b) => LANES.indexOf(a.lane) - LANES.indexOf(b.lane));
    this.#byName = distinct(sorted, 'name');
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

  /** Undefined for a name that no feed here has. */
  find(name: string): Feed | undefined {
    return this.#byName.get(name);
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
