// The answer of GetConfig: the cheapest thing that brings a node to its cluster's head.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import {
  type GetConfigRequest,
  type GetConfigResponse,
  GetConfigResponseSchema,
} from '../proto/gen/svc/node/v1/config_pb.js';
import { reachableRevision, readConfigDelta } from './config-delta.ts';
import { PULLED_BYTES } from './config-entry.ts';
import { isValidBase, readConfigHead } from './config-history.ts';
import { readConfigPage } from './config-page.ts';
import { readRepair } from './config-repair.ts';

/**
 * A difference where the base is valid (possibly to an earlier revision than the head: the node asks again), else the
 * buckets that differ where the node sent its sums, else a page of a snapshot. Null when there is no such cluster.
 */
export async function answerGetConfig(
  pool: Pool,
  clusterId: string,
  { base, pageToken, bucketSums }: GetConfigRequest,
): Promise<GetConfigResponse | null> {
  if (pageToken === '') {
    const head = await readConfigHead(pool, clusterId);
    if (!head) return null;
    if (base && base.revision > 0n && (await isValidBase(pool, clusterId, head, base))) {
      const to = await reachableRevision(pool, clusterId, base.revision, head);
      if (to !== null) {
        const value = await readConfigDelta(pool, clusterId, 'S', head.epoch, base.revision, to, 2 * PULLED_BYTES);
        return create(GetConfigResponseSchema, { result: { case: 'delta', value } });
      }
    } else if (bucketSums.length > 0) {
      const value = await readRepair(pool, clusterId, bucketSums);
      if (value) return create(GetConfigResponseSchema, { result: { case: 'repair', value } });
    }
  }
  const value = await readConfigPage(pool, clusterId, pageToken);
  return value && create(GetConfigResponseSchema, { result: { case: 'page', value } });
}
