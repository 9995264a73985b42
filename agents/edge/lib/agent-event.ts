// What parts of the agent hear.
import type { BanState, GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { OwnBanLift } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { AcmePosition } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { HeartbeatResponse, Target } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeEvent } from '../../kit/channel-client.ts';

/** A message of the console's stream. Its target comes as an event of its own, as the one of a heartbeat does. */
type ConsoleMessage = Exclude<NodeEvent, { case: 'target' | undefined }> & {
  /** Monotonic milliseconds. */
  receivedAt: number;
};

export type AgentEvent =
  | ConsoleMessage
  | { case: 'target'; value: Target }
  /** The console answered a heartbeat. */
  | { case: 'heartbeat'; value: HeartbeatResponse }
  /** The console is reached. */
  | { case: 'connected' }
  | { case: 'dataPlaneStatus'; value: GetStatusResponse }
  /** The data plane runs this configuration now. */
  | { case: 'configApplied'; position: ConfigPosition; failed: FailedEntry[]; micros: number }
  /** The data plane enforces bans up to this state now. */
  | { case: 'bansApplied'; state: BanState; micros: number }
  /** The data plane answers certificate authorities from this now. */
  | { case: 'acmeApplied'; position: AcmePosition }
  /** Bans of the console changed; undefined: any may have. */
  | { case: 'bansChanged'; globalCidrs: Iterable<string> | undefined; liftedOwn: readonly OwnBanLift[] }
  /** Own global bans of this node changed. */
  | { case: 'ownBansChanged'; globalCidrs: Iterable<string> }
  /** Addresses that kernel bans never drop changed. */
  | { case: 'exemptChanged' }
  /** The pack of certificates grew, or is another file. */
  | { case: 'certificatesChanged' };
