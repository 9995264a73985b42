// Reads from PostgreSQL what the fan-out streams did not deliver and puts it into the rings: one read for all nodes of
// the cluster, instead of a Target that makes each of them read for itself.
import { toBinary } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { readBanChanges } from '../../../models/ban-feed.ts';
import { readConfigDelta } from '../../../models/config-delta.ts';
import { readConfigHead } from '../../../models/config-history.ts';
import { BanBatchSchema } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import { ConfigDeltaSchema } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { ClusterFeed } from './cluster-feed.ts';
import { banBatchFrame, configDeltaFrame } from './frames.ts';

const BAN_LIMIT = 2_000;
/** Batches of bans read in one go; what is further behind is told by a Target. */
const MAX_BATCHES = 5;

/** Brings the feed's ban ring to the head. */
export async function catchUpBans(pool: Pool, feed: ClusterFeed): Promise<void> {
  const { epoch } = feed.bans;
  for (let count = 0; count < MAX_BATCHES; count++) {
    const batch = await readBanChanges(pool, feed.clusterId, feed.bans.ring.head, BAN_LIMIT);
    // Another epoch is for the comparison with the heads to notice.
    if (!batch || batch.epoch !== epoch || feed.bans.epoch !== epoch) return;
    const frame = banBatchFrame(toBinary(BanBatchSchema, batch));
    feed.appendBans({ from: batch.from, to: batch.to, frame, at: Date.now() });
    feed.wake();
  }
}

/** Brings the feed's configuration ring to the head. */
export async function catchUpConfig(pool: Pool, feed: ClusterFeed): Promise<void> {
  const { epoch, ring } = feed.config;
  const from = ring.head;
  const head = await readConfigHead(pool, feed.clusterId);
  if (!head || head.epoch !== epoch || feed.config.epoch !== epoch || head.revision <= from) return;
  // Differences do not reach back that far: nodes are told the head and fetch it.
  if (from < head.deltaFloor) {
    ring.clear(head.revision);
    feed.wake();
    return;
  }
  const delta = await readConfigDelta(pool, feed.clusterId, 'S', epoch, from, head.revision);
  if (feed.config.epoch !== epoch) return;
  const frame = configDeltaFrame(toBinary(ConfigDeltaSchema, delta));
  const features = delta.upserts.flatMap((entry) => entry.features);
  feed.appendConfig({ from, to: head.revision, frame, at: Date.now() }, head.setHash, features);
  feed.wake();
}
