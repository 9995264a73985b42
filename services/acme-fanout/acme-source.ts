// What certificate authorities are answered as batches, encoded once for all nodes of a cluster.
import { create, toBinary } from '@bufbuild/protobuf';
import { readAcmeChanges, readAcmeTargets } from '../../models/certificates/acme-token.ts';
import { AcmeBatchSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import type { FeedSource } from '../../runtime/feeds.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Changes in one pushed batch: about 200 KiB. */
const BATCH = 1000;

export function acmeSource({ pools: { channel: pool } }: Runtime): FeedSource {
  return {
    targets: async (clusterIds) => {
      const targets = await readAcmeTargets(pool, clusterIds);
      return new Map([...targets].map(([id, { epoch, sequence }]) => [id, { epoch, position: sequence }]));
    },
    read: async (clusterId, from, { epoch }) => {
      const batch = await readAcmeChanges(pool, clusterId, from, BATCH);
      // Another epoch has another stream.
      if (!batch || batch.epoch !== epoch) return null;
      return { from, to: batch.to, bytes: toBinary(AcmeBatchSchema, batch) };
    },
    mark: ({ epoch, position }) =>
      toBinary(AcmeBatchSchema, create(AcmeBatchSchema, { epoch, from: position, to: position })),
  };
}
