// Who is at the other end of an authenticated connection. One object a certificate, refreshed in place, so that
// streams and calls see at once what changed.
export interface NodeIdentity {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly serial: string;
  readonly certificateNotAfter: Date;
  readonly name: string;
  status: 'active' | 'disabled';
  /** Capabilities of the last heartbeat. */
  features: ReadonlySet<string>;
}
