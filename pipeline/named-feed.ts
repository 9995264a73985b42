// A feed by name as its folder describes it: where it is, what changed, and what a node lacks. The rest of a feed is the same
// for all: messages, marks, capability, place in line.
import { create, toBinary } from '@bufbuild/protobuf';
import type { Capability } from '../contract/capabilities.ts';
import { FeedBatchSchema } from '../proto/gen/svc/node/v1/feeds_pb.js';
import { namedWire } from '../runtime/feed-wire.ts';
import type { Feed, FeedRepair, FeedSource, FeedTarget } from '../runtime/feeds.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { positionMarks } from './position-marks.ts';

/** What PostgreSQL holds of a feed by name. Bodies are messages of its own, of at most 256 KiB. */
export interface FeedRows {
  /** Where the clusters (all without ids) should be. */
  targets(clusterIds?: readonly string[]): Promise<Map<string, FeedTarget>>;
  /** What changed in (from, to], `to` as far as one body reaches; null when nothing follows. */
  changes(clusterId: string, from: bigint, target: FeedTarget): Promise<{ to: bigint; body: Uint8Array } | null>;
  repair: FeedRepair;
}

export interface NamedFeed extends Pick<Feed, 'name' | 'topic' | 'ownerLock' | 'hint' | 'changes'> {
  /** What a node needs to follow it. */
  needs?: Capability;
  rows(runtime: Runtime): FeedRows;
}

export function namedFeed({ name, topic, ownerLock, hint, changes, needs = 'feeds-v1', rows }: NamedFeed): Feed {
  return {
    name,
    topic,
    ownerLock,
    lane: 'regular',
    wire: namedWire(name, needs),
    columns: null,
    hint,
    changes,
    source: (runtime) => sourceOf(name, runtime, rows(runtime)),
    repair: (runtime) => rows(runtime).repair,
  };
}

function sourceOf(feed: string, runtime: Runtime, rows: FeedRows): FeedSource {
  return {
    targets: (clusterIds) => rows.targets(clusterIds),
    read: async (clusterId, from, target) => {
      const found = await rows.changes(clusterId, from, target);
      if (!found) return null;
      const { to, body } = found;
      const { epoch } = target;
      const mark = (await positionMarks(runtime)).feed(feed, clusterId, { epoch, sequence: to });
      const batch = create(FeedBatchSchema, { feed, epoch, from, to, body, mark });
      return { from, to, bytes: toBinary(FeedBatchSchema, batch) };
    },
    mark: ({ epoch, position: at }) =>
      toBinary(FeedBatchSchema, create(FeedBatchSchema, { feed, epoch, from: at, to: at, truncated: true })),
  };
}
