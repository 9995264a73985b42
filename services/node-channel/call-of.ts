import type { Call } from '../../runtime/call.ts';
import type { NodeIdentity } from './identity.ts';

/** A change that a node makes. */
export function callOf({ nodeId, name }: NodeIdentity, requestId: string): Call {
  return {
    actor: { type: 'node', id: nodeId, name },
    ip: null,
    userAgent: null,
    requestId,
    idempotency: null,
    changes: [],
  };
}
