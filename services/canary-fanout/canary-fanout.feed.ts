// The configuration feed of the nodes that try a candidate: differences of what they run.

import { configSource } from '../../pipeline/config-source.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Feed } from '../../runtime/feeds.ts';

const canaryFeed: Feed = {
  name: 'canary',
  topic: 'canary',
  ownerLock: 0x53560104,
  event: WatchEventSchema.field.configDelta.number,
  hint: 'revisions',
  changes: null,
  source: (runtime) => configSource(runtime, Track.CANARY),
};

export default canaryFeed;
