// What parts of the agent hear.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { OwnBanLift } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { AppliedRequest, HeartbeatResponse, Reached, Target } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeEvent } from '../../kit/channel-client.ts';

/** A message of the console's stream. Its target comes as an event of its own, as the one of a heartbeat does. */
type ConsoleMessage = Exclude<NodeEvent, { case: 'target' | undefined }> & {
  /** Monotonic milliseconds. */
  receivedAt: number;
};

/** A place in a feed, as the console is told of it. */
export interface ReachedPlace {
  feed: string;
  epoch: bigint;
  /** Revision, or sequence. */
  number: bigint;
  /** The console is told without a pause. */
  urgent: boolean;
  /** Puts it into a report. `steps`: what was reached since the last report, oldest first. */
  write(request: Omit<Partial<AppliedRequest>, '$typeName' | '$unknown'>, steps: Reached[]): void;
}

export type AgentEvent =
  | ConsoleMessage
  | { case: 'target'; value: Target }
  /** The console answered a heartbeat. */
  | { case: 'heartbeat'; value: HeartbeatResponse }
  /** The console is reached. */
  | { case: 'connected' }
  | { case: 'dataPlaneStatus'; value: GetStatusResponse }
  /** The data plane runs this configuration now. */
  | { case: 'configApplied'; position: ConfigPosition; failed: FailedEntry[] }
  /** Everything of a feed up to this place is in force now. */
  | ({ case: 'reached' } & ReachedPlace)
  /** Bans of the console changed; undefined: any may have. */
  | { case: 'bansChanged'; globalCidrs: Iterable<string> | undefined; liftedOwn: readonly OwnBanLift[] }
  /** Own global bans of this node changed. */
  | { case: 'ownBansChanged'; globalCidrs: Iterable<string> }
  /** Addresses that kernel bans never drop changed. */
  | { case: 'exemptChanged' }
  /** The pack of certificates grew, or is another file. */
  | { case: 'certificatesChanged' };
