// The ban feed of clusters as batches, encoded once for all nodes.
import { create, toBinary } from '@bufbuild/protobuf';
import { readBanChanges, readBanTargets } from '../../models/bans/ban-feed.ts';
import { positionMarks } from '../../pipeline/position-marks.ts';
import { BanBatchSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import type { FeedSource } from '../../runtime/feeds.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Changes in one pushed batch: about 100 KiB. */
const BATCH = 1000;

export function banSource(runtime: Runtime): FeedSource {
  const pool = runtime.pools.channel;
  return {
    targets: async (clusterIds) => {
      const targets = await readBanTargets(pool, clusterIds);
      return new Map([...targets].map(([id, { epoch, sequence }]) => [id, { epoch, position: sequence }]));
    },
    read: async (clusterId, from, { epoch }) => {
      const batch = await readBanChanges(pool, clusterId, from, BATCH);
      // Another epoch has another stream.
      if (!batch || batch.epoch !== epoch) return null;
      batch.mark = (await positionMarks(runtime)).feed('bans', clusterId, { epoch, sequence: batch.to });
      return { from, to: batch.to, bytes: toBinary(BanBatchSchema, batch) };
    },
    mark: ({ epoch, position }) =>
      toBinary(
        BanBatchSchema,
        create(BanBatchSchema, {
          epoch,
          from: position,
          to: position,
          truncated: true,
          serverTimeMs: BigInt(Date.now()),
        }),
      ),
  };
}
