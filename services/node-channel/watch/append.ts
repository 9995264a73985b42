// Puts an encoded batch into the ring of its feed: framed once for all streams of the cluster.
import { fromBinary } from '@bufbuild/protobuf';
import { CHALLENGE_KEYS_KIND } from '../../../models/clusters/challenge-keys.entry.ts';
import { ChallengeKeysMarkerSchema } from '../../../proto/gen/svc/config/v1/protection_pb.js';
import { ConfigDeltaSchema } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { FanoutBatch } from '../../../runtime/fanout-stream.ts';
import type { Feed } from '../../../runtime/feeds.ts';
import { CANARY, type ClusterFeed, CONFIG } from './cluster-feed.ts';
import { batchFrame } from './frames.ts';

/** Call `wake` of the cluster's feed after the last of several. Throws for a configuration that cannot be read. */
export function appendBatch(cluster: ClusterFeed, { name, wire }: Feed, { from, to, bytes }: FanoutBatch): void {
  const batch = { from, to, frame: batchFrame(wire.event, bytes), at: Date.now() };
  if (name !== CONFIG && name !== CANARY) {
    cluster.append(name, batch);
    return;
  }
  const delta = fromBinary(ConfigDeltaSchema, bytes);
  const features = delta.upserts.flatMap((entry) => entry.features);
  const marker = delta.upserts.find((entry) => entry.kind === CHALLENGE_KEYS_KIND);
  if (marker) cluster.setKeysVersion(fromBinary(ChallengeKeysMarkerSchema, marker.body).version);
  if (name === CANARY) cluster.appendCanary(batch, delta.setHash, features);
  else cluster.appendConfig(batch, delta.setHash, features);
}
