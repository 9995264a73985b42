// Certificates with their keys, for the node that has to serve them. Nothing of an answer is logged.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { openCertificates } from '../../models/certificates/certificate.ts';
import type {
  GetCertificatesRequest,
  GetCertificatesResponseSchema,
} from '../../proto/gen/svc/node/v1/certificates_pb.js';
import type { CallContext } from './calls.ts';
import type { NodeIdentity } from './identity.ts';

/** Certificates in one answer. */
const MAX_ASKED = 64;

/** Of those asked for, the ones that entries of the node's cluster name and that were not replaced meanwhile. */
export async function getCertificates(
  { runtime, pulls }: CallContext,
  { nodeId, clusterId }: NodeIdentity,
  { certificates: asked }: GetCertificatesRequest,
): Promise<MessageInitShape<typeof GetCertificatesResponseSchema>> {
  if (asked.length > MAX_ASKED) {
    throw new ConnectError(`at most ${MAX_ASKED} certificates per request`, Code.InvalidArgument);
  }
  if (asked.length === 0) return {};
  const { pools, sealer } = runtime;
  const opened = await pulls.take(nodeId, () => openCertificates(pools.channel, sealer, clusterId, asked));
  return { certificates: opened.map(({ id, ...material }) => ({ certificateId: id, ...material })) };
}
