// Who is at the other end of an authenticated connection. One object a certificate, refreshed in place, so that
// streams and calls see at once what changed.
import type { Principal } from './methods.ts';

export interface NodeIdentity {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly serial: string;
  readonly certificateNotAfter: Date;
  readonly name: string;
  /** What it may call as. */
  readonly principals: readonly Principal[];
  status: 'active' | 'disabled';
  /** Capabilities of the last heartbeat. */
  features: ReadonlySet<string>;
}
