// Purges of the console, which the data plane keeps by itself. What is purged and not is no concern of the agent.
import { create } from '@bufbuild/protobuf';
import { type PurgePlace, PurgePlaceSchema } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { FeedPosition } from '../../../proto/gen/svc/node/v1/feeds_pb.js';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { FeedOwner } from '../feeds/named-feed.ts';
import { namedFeedPart } from '../feeds/named-feed-part.ts';

/** As the console registers it. */
const FEED = 'purges';
/** A batch has at most 256 KiB. */
const BATCHES_PER_CALL = 64;

class Purges implements FeedOwner {
  private readonly client: Pick<EdgeClient, 'applyPurges' | 'getStatus'>;
  private readonly clusterId: string;

  constructor(client: Purges['client'], clusterId: string) {
    this.client = client;
    this.clusterId = clusterId;
  }

  apply(body: Uint8Array, place?: FeedPosition): Promise<void> {
    return this.replace([body], place);
  }

  /** Purges add up: one that came before changes nothing. */
  async replace(batches: readonly Uint8Array[], place?: FeedPosition): Promise<void> {
    const { clusterId } = this;
    let begin = 0;
    for (; batches.length - begin > BATCHES_PER_CALL; begin += BATCHES_PER_CALL)
      await this.client.applyPurges({ clusterId, batches: batches.slice(begin, begin + BATCHES_PER_CALL) });
    const rest = batches.slice(begin);
    if (place) await this.client.applyPurges({ clusterId, batches: rest, place: reached(place) });
    else if (rest.length > 0) await this.client.applyPurges({ clusterId, batches: rest });
  }

  /** What is in force is on the disk of the data plane. */
  snapshot(): Uint8Array[] {
    return [];
  }

  unreadable(): 'startOver' {
    return 'startOver';
  }

  async lacks({ epoch, sequence }: FeedPosition): Promise<boolean> {
    const { purges } = await this.client.getStatus();
    if (!purges || purges.clusterId !== this.clusterId || purges.epoch !== epoch) return true;
    return purges.sequence < sequence;
  }
}

function reached({ epoch, sequence }: FeedPosition): PurgePlace {
  return create(PurgePlaceSchema, { epoch, sequence });
}

export const purgesPart = namedFeedPart({
  name: FEED,
  make: ({ options }, { client }) => new Purges(client, options.identity.clusterId),
});
