// The answer of GetConfig: the cheapest thing that brings a node to its cluster's head.
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import {
  type GetConfigRequest,
  type GetConfigResponse,
  GetConfigResponseSchema,
  type Track,
} from '../../proto/gen/svc/node/v1/config_pb.js';
import { reachableRevision, readConfigDelta } from './config-delta.ts';
import { LARGEST_ANSWER_BYTES } from './config-entry.ts';
import { headOn, isValidBase, readConfigHead } from './config-history.ts';
import { readConfigPage } from './config-page.ts';
import { readRepair } from './config-repair.ts';

/**
 * What brings a node to the head of its track. A difference where the base is valid (possibly to an earlier revision than the head: the node asks again), else the
 * buckets that differ where the node sent its sums, else a page of a snapshot. Null when there is no such cluster.
 */
export async function answerGetConfig(
  pool: Pool,
  clusterId: string,
  track: Track,
  { base, pageToken, bucketSums }: GetConfigRequest,
): Promise<GetConfigResponse | null> {
  if (pageToken === '') {
    const head = await readConfigHead(pool, clusterId);
    if (!head) return null;
    const target = headOn(head, track);
    if (base && base.revision > 0n && (await isValidBase(pool, clusterId, head, base))) {
      const revision = await reachableRevision(pool, clusterId, base, target);
      if (revision !== null) {
        const value = await readConfigDelta(pool, clusterId, base, { ...target, revision }, LARGEST_ANSWER_BYTES);
        return create(GetConfigResponseSchema, { result: { case: 'delta', value } });
      }
    } else if (bucketSums.length > 0) {
      const value = await readRepair(pool, clusterId, track, bucketSums);
      if (value) return create(GetConfigResponseSchema, { result: { case: 'repair', value } });
    }
  }
  const value = await readConfigPage(pool, clusterId, track, pageToken);
  return value && create(GetConfigResponseSchema, { result: { case: 'page', value } });
}
