// The configuration feed of clusters as batches: differences, encoded once for all nodes.
import { create, toBinary } from '@bufbuild/protobuf';
import { readConfigDelta } from '../models/config/config-delta.ts';
import { readConfigHeads } from '../models/config/config-history.ts';
import { ConfigDeltaSchema, Track } from '../proto/gen/svc/node/v1/config_pb.js';
import type { FeedSource } from '../runtime/feeds.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { positionMarks } from './position-marks.ts';

/** The differences of one track. Without a canary its track is nowhere. */
export function configSource(runtime: Runtime, track: Track): FeedSource {
  const pool = runtime.pools.channel;
  return {
    targets: async (clusterIds) => {
      const heads = [...(await readConfigHeads(pool, clusterIds))];
      return new Map(
        heads.map(([id, head]) => {
          const { epoch, revision } = head;
          return [id, { epoch, position: track === Track.CANARY ? (head.canary?.revision ?? 0n) : revision }];
        }),
      );
    },
    // From the end of the stream to the head at once: a burst of revisions becomes one difference.
    read: async (clusterId, from, { epoch, position }) => {
      const delta = await readConfigDelta(
        pool,
        clusterId,
        { track, revision: from },
        { epoch, track, revision: position },
      );
      delta.mark = (await positionMarks(runtime)).config(clusterId, delta);
      return { from, to: position, bytes: toBinary(ConfigDeltaSchema, delta) };
    },
    mark: ({ epoch, position }) =>
      toBinary(
        ConfigDeltaSchema,
        create(ConfigDeltaSchema, {
          epoch,
          track,
          base: position,
          baseTrack: track,
          revision: position,
          truncated: true,
        }),
      ),
  };
}
