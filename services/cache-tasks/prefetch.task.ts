// A prefetch as a task for a node, which asks for the URLs by itself: they are too many for the input of a task.
import { create, toBinary } from '@bufbuild/protobuf';
import type { NodeTaskKind } from '../../mixins/node-task.ts';
import { readState } from '../../models/cache/prefetch-result.ts';
import { type PrefetchState, PrefetchTaskInputSchema } from '../../proto/gen/svc/node/v1/tasks_pb.js';

/** Above the four minutes of a node. */
const LEASE_MS = 5 * 60_000;

export const prefetchTask: NodeTaskKind<string, PrefetchState> = {
  name: 'prefetch',
  leaseMs: LEASE_MS,
  expireMs: 3 * LEASE_MS,
  codes: [],
  encode: (cacheTaskId) => toBinary(PrefetchTaskInputSchema, create(PrefetchTaskInputSchema, { cacheTaskId })),
  decode: readState,
};
