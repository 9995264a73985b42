import type { MessageInitShape } from '@bufbuild/protobuf';
import { SESSION_TICKET_KEYS } from '../../models/clusters/session-ticket-key.ts';
import type { GetSessionTicketKeysResponseSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import type { CallContext } from './calls.ts';
import type { NodeIdentity } from './identity.ts';

/** The keys of the node's cluster; without any, version 0 and none. */
export async function getSessionTicketKeys(
  { runtime, pulls }: CallContext,
  { nodeId, clusterId }: NodeIdentity,
): Promise<MessageInitShape<typeof GetSessionTicketKeysResponseSchema>> {
  const read = () => SESSION_TICKET_KEYS.read(runtime.pools.channel, runtime.sealer, clusterId);
  const { version, keys } = await pulls.take(nodeId, read);
  const { next, current, previous } = keys;
  const secrets = { next: next?.secret, current: current?.secret, previous: previous?.secret };
  const held = Object.entries(secrets).flatMap(([role, secret]) => (secret ? [[role, new Uint8Array(secret)]] : []));
  return { keys: { version, ...Object.fromEntries(held) } };
}
