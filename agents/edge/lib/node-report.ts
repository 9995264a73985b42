// What a node says about itself at one moment: to the console in a heartbeat, to people in the status file. Parts fill it in.
import { create } from '@bufbuild/protobuf';
import type { BanPosition } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { AcmePosition } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { ConfigPosition } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { FeedPosition } from '../../../proto/gen/svc/node/v1/feeds_pb.js';
import { type HeartbeatRequest, type NodeInfo, NodeInfoSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';

const MAX_MESSAGE = 500;

/** What a problem keeps from working, most urgent first. */
const URGENCIES = ['serving', 'following', 'feature', 'lasting'] as const;

export type Urgency = (typeof URGENCIES)[number];

type Init<T> = Omit<Partial<T>, '$typeName' | '$unknown'>;

export class NodeReport {
  /** Fields of the heartbeat. */
  readonly heartbeat: Init<HeartbeatRequest> = {};
  readonly info: Init<NodeInfo> = {};
  /** Positions from which the console goes on. */
  readonly positions: { config?: ConfigPosition; bans?: BanPosition; acme?: AcmePosition; feeds?: FeedPosition[] } = {};
  /** Sections of the status file. */
  readonly shown: Record<string, unknown> = {};
  private readonly problems: { urgency: Urgency; text: string }[] = [];

  /** Adds something that is wrong; "" is nothing. */
  problem(urgency: Urgency, text: string): void {
    if (text !== '') this.problems.push({ urgency, text });
  }

  /** All that is wrong, most urgent first, at most 500 characters; "" when all is well. */
  get message(): string {
    const sorted = URGENCIES.flatMap((urgency) => this.problems.filter((problem) => problem.urgency === urgency));
    return sorted
      .map(({ text }) => text)
      .join('; ')
      .slice(0, MAX_MESSAGE);
  }

  toHeartbeat(): Init<HeartbeatRequest> {
    return { ...this.heartbeat, info: create(NodeInfoSchema, this.info), message: this.message };
  }

  toStatus(): Record<string, unknown> {
    return { ...this.shown, lastError: this.message };
  }
}
