// What a node asks and reports about attacks: the keys that sign passes, its own bans, security events and state.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { readKeys } from '../../models/challenge-key.ts';
import type { GetChallengeKeysResponseSchema } from '../../proto/gen/svc/node/v1/security_pb.js';
import type { CallContext } from './calls.ts';
import type { NodeIdentity } from './identity.ts';

/** The keys of the node's cluster; without any, version 0 and none. */
export async function getChallengeKeys(
  { runtime, pulls }: CallContext,
  node: NodeIdentity,
): Promise<MessageInitShape<typeof GetChallengeKeysResponseSchema>> {
  const { version, keys } = await pulls.take(() => readKeys(runtime.pools.channel, runtime.sealer, node.clusterId));
  return { keys: { version, ...keys } };
}
