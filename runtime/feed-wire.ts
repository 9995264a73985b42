// How a feed travels between console and nodes. A feed by name travels in the messages of feeds.proto; the four older ones keep
// messages of their own, which their folders map into the same mechanism.
import { create } from '@bufbuild/protobuf';
import type { Capability } from '../contract/capabilities.ts';
import type { BanPosition } from '../proto/gen/svc/node/v1/bans_pb.js';
import type { AcmePosition } from '../proto/gen/svc/node/v1/certificates_pb.js';
import type { ConfigPosition } from '../proto/gen/svc/node/v1/config_pb.js';
import { type FeedPosition, FeedPositionSchema } from '../proto/gen/svc/node/v1/feeds_pb.js';
import { type FeedApplied, type Reached, type Target, WatchEventSchema } from '../proto/gen/svc/node/v1/node_pb.js';

/** A place in a feed. `mark`: proof that the console gave it; empty where there is none. */
export interface FeedPlace {
  epoch: bigint;
  sequence: bigint;
  mark: Uint8Array;
}

/** Where a node says it is, in whichever message. */
export interface PositionReport {
  config?: ConfigPosition | undefined;
  bans?: BanPosition | undefined;
  acme?: AcmePosition | undefined;
  feeds?: readonly FeedPosition[];
  configSteps?: readonly Reached[];
  bansSteps?: readonly Reached[];
  feedSteps?: readonly FeedApplied[];
}

export interface FeedWire {
  /** Field of WatchEvent that carries a batch. Feeds of which a node gets one share it. */
  readonly event: number;
  /** Only nodes with this capability are sent the feed; null: all. */
  readonly needs: Capability | null;
  /** Whether a node that reports no place in a heartbeat has nothing; else it is where it was. */
  readonly silenceIsNothing: boolean;
  /** Whether places carry marks, so that a node ahead of the database can prove what the database has forgotten. */
  readonly isMarked: boolean;
  /** Where the node says it is; undefined where it does not say. */
  told(report: PositionReport): FeedPlace | undefined;
  /** What it reached since its last report, oldest first. */
  steps(report: PositionReport): readonly Reached[];
  /** Names the place in a target; null for configurations, whose place has a hash. */
  readonly aim: ((target: Target, place: Pick<FeedPlace, 'epoch' | 'sequence'>) => void) | null;
}

const NO_MARK = new Uint8Array();

/** The wire of a feed by name. */
export function namedWire(feed: string, needs: Capability): FeedWire {
  return {
    event: WatchEventSchema.field.feedBatch.number,
    needs,
    silenceIsNothing: true,
    isMarked: true,
    told: ({ feeds = [] }) => feeds.find((place) => place.feed === feed),
    steps: ({ feedSteps = [] }) => feedSteps.find(({ position }) => position?.feed === feed)?.steps ?? [],
    aim: (target, { epoch, sequence }) => {
      target.feeds = target.feeds.filter((place) => place.feed !== feed);
      target.feeds.push(create(FeedPositionSchema, { feed, epoch, sequence }));
    },
  };
}

/** The wire of a configuration's feed: its place is a revision. */
export const CONFIG_WIRE: FeedWire = {
  event: WatchEventSchema.field.configDelta.number,
  needs: null,
  silenceIsNothing: false,
  isMarked: true,
  told: ({ config }) => config && { epoch: config.epoch, sequence: config.revision, mark: config.mark },
  steps: ({ configSteps = [] }) => configSteps,
  aim: null,
};

/** A place without a mark. */
export function unmarked({ epoch, sequence }: { epoch: bigint; sequence: bigint }): FeedPlace {
  return { epoch, sequence, mark: NO_MARK };
}
