// The ban feed: every change of a ban, in the order of commits.
import { BAN_CHANGES } from '../../models/bans/ban-feed.ts';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Feed } from '../../runtime/feeds.ts';
import { banSource } from './ban-source.ts';

const banFeed: Feed = {
  name: 'bans',
  topic: 'bans',
  ownerLock: 0x53560102,
  event: WatchEventSchema.field.banBatch.number,
  hint: 'bans',
  changes: BAN_CHANGES,
  source: banSource,
};

export default banFeed;
