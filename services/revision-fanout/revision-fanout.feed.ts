// The configuration feed: revisions of a cluster's configuration, as differences.
import { CONFIG_CHANGES } from '../../models/config/config-history.ts';
import { configSource } from '../../pipeline/config-source.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Feed } from '../../runtime/feeds.ts';

const configFeed: Feed = {
  name: 'config',
  topic: 'config',
  ownerLock: 0x53560101,
  event: WatchEventSchema.field.configDelta.number,
  hint: 'revisions',
  changes: CONFIG_CHANGES,
  source: (runtime) => configSource(runtime, Track.STABLE),
};

export default configFeed;
