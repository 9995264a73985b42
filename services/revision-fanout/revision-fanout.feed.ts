// The configuration feed: revisions of a cluster's configuration, as differences.
import { CONFIG_CHANGES } from '../../models/config/config-history.ts';
import { configSource } from '../../pipeline/config-source.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { CONFIG_WIRE } from '../../runtime/feed-wire.ts';
import type { Feed } from '../../runtime/feeds.ts';

const configFeed: Feed = {
  name: 'config',
  topic: 'config',
  ownerLock: 0x53560101,
  lane: 'bulk',
  wire: CONFIG_WIRE,
  // Written with the hash of the set and its failed entries.
  columns: { epoch: 'epoch', sequence: 'revision', at: 'applied_at' },
  hint: 'revisions',
  changes: CONFIG_CHANGES,
  source: (runtime) => configSource(runtime, Track.STABLE),
  repair: null,
};

export default configFeed;
