// The configuration feed of the nodes that try a candidate: differences of what they run.

import { configSource } from '../../pipeline/config-source.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { CONFIG_WIRE } from '../../runtime/feed-wire.ts';
import type { Feed } from '../../runtime/feeds.ts';

const canaryFeed: Feed = {
  name: 'canary',
  topic: 'canary',
  ownerLock: 0x53560104,
  lane: 'bulk',
  wire: CONFIG_WIRE,
  // Written with the hash of the set and its failed entries.
  columns: { epoch: 'epoch', sequence: 'revision', at: 'applied_at' },
  hint: 'revisions',
  changes: null,
  source: (runtime) => configSource(runtime, Track.CANARY),
  repair: null,
};

export default canaryFeed;
