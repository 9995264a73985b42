// Hands what arrives on the fan-out streams to the feeds of the clusters that have nodes here. Losing anything is
// harmless: heads are compared with PostgreSQL every 2 s.
import { fromBinary } from '@bufbuild/protobuf';
import { CHALLENGE_KEYS_KIND } from '../../../models/entries/challenge-keys.ts';
import { ChallengeKeysMarkerSchema } from '../../../proto/gen/svc/config/v1/protection_pb.js';
import { ConfigDeltaSchema } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { FanoutReader, type ReadBatch } from '../../../runtime/fanout-stream.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type Feed, fanoutStream } from '../../../runtime/stream-names.ts';
import type { ClusterFeed, FeedTrack } from './cluster-feed.ts';
import { banBatchFrame, configDeltaFrame } from './frames.ts';

interface Followed {
  feed: ClusterFeed;
  kind: Feed;
  epoch: bigint;
}

const KINDS: readonly Feed[] = ['bans', 'config'];

export class FanOut {
  readonly #runtime: Runtime;
  readonly #reader: FanoutReader;
  readonly #onGap: (feed: ClusterFeed, kind: Feed) => void;
  readonly #followed = new Map<string, Followed>();

  /** `onGap`: a batch is known to exist and its bytes are not there. */
  constructor(runtime: Runtime, onGap: (feed: ClusterFeed, kind: Feed) => void) {
    this.#runtime = runtime;
    this.#onGap = onGap;
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
  follow(feed: ClusterFeed): void {
    for (const kind of KINDS) {
      const { epoch, ring } = trackOf(feed, kind);
      const stream = fanoutStream(this.#runtime.env.redisPrefix, feed.clusterId, kind, epoch);
      this.#dropOthers(feed, kind, stream);
      this.#followed.set(stream, { feed, kind, epoch });
      this.#reader.follow(stream, ring.head);
    }
  }

  unfollow(feed: ClusterFeed): void {
    for (const kind of KINDS) this.#dropOthers(feed, kind, null);
  }

  /** Streams of this feed's earlier epochs. */
  #dropOthers(feed: ClusterFeed, kind: Feed, kept: string | null): void {
    for (const [stream, followed] of this.#followed) {
      if (followed.feed !== feed || followed.kind !== kind || stream === kept) continue;
      this.#followed.delete(stream);
      this.#reader.unfollow(stream);
    }
  }

  #deliver(stream: string, batches: readonly ReadBatch[]): void {
    const followed = this.#followed.get(stream);
    if (!followed) return;
    const { feed, kind, epoch } = followed;
    const track = trackOf(feed, kind);
    if (track.epoch !== epoch) return;
    try {
      for (const batch of batches) if (!append(feed, kind, batch)) this.#onGap(feed, kind);
    } catch (err) {
      this.#runtime.log.error({ err, stream }, 'unreadable batch');
      this.#onGap(feed, kind);
    }
    feed.wake();
  }
}

function trackOf(feed: ClusterFeed, kind: Feed): FeedTrack {
  return kind === 'bans' ? feed.bans : feed.config;
}

/** False where the batch leaves a gap: a mark carries only the position, Redis may have lost bytes or batches before. */
function append(feed: ClusterFeed, kind: Feed, { from, to, bytes }: ReadBatch): boolean {
  const { ring } = trackOf(feed, kind);
  if (to <= ring.head) return true;
  if (bytes === null || from === to || from > ring.head) return false;
  const at = Date.now();
  if (kind === 'bans') {
    feed.appendBans({ from, to, frame: banBatchFrame(bytes), at });
    return true;
  }
  const delta = fromBinary(ConfigDeltaSchema, bytes);
  const features = delta.upserts.flatMap((entry) => entry.features);
  const marker = delta.upserts.find((entry) => entry.kind === CHALLENGE_KEYS_KIND);
  if (marker) feed.setKeysVersion(fromBinary(ChallengeKeysMarkerSchema, marker.body).version);
  feed.appendConfig({ from, to, frame: configDeltaFrame(bytes), at }, delta.setHash, features);
  return true;
}
