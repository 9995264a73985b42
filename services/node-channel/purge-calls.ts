// What nodes need for PURGE requests of clients: the secret of their keys, and the tasks.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { purgeSecret } from '../../models/cache/purge-method.ts';
import { purgeByRequest } from '../../models/cache/purge-request.ts';
import type {
  GetPurgeSecretResponseSchema,
  SubmitPurgeRequest,
  SubmitPurgeResponseSchema,
} from '../../proto/gen/svc/node/v1/purges_pb.js';
import { write } from '../../runtime/write.ts';
import { callOf } from './call-of.ts';
import type { CallContext } from './calls.ts';
import type { NodeIdentity } from './identity.ts';

/** Secrets of clusters do not change. */
const VERSION = 1n;

/** The secret of the node's cluster. */
export async function getPurgeSecret(
  { runtime, pulls }: CallContext,
  { nodeId, clusterId }: NodeIdentity,
): Promise<MessageInitShape<typeof GetPurgeSecretResponseSchema>> {
  const secret = await pulls.take(nodeId, () => purgeSecret(runtime.pools.api, runtime.sealer, clusterId));
  return { secret: { version: VERSION, secret: new Uint8Array(secret) } };
}

/** Creates the task of a PURGE request; its source is the node. */
export async function submitPurge(
  { runtime, writes }: CallContext,
  node: NodeIdentity,
  { siteId, url }: SubmitPurgeRequest,
): Promise<MessageInitShape<typeof SubmitPurgeResponseSchema>> {
  return writes.take(node.nodeId, () =>
    write(runtime, callOf(node, 'purge'), {}, (tx) => purgeByRequest(tx, node.clusterId, { siteId, url })),
  );
}
