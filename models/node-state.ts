// What nodes report. Written in sets by the node channel, never row by row; no index on a changing column.
import { BaseModel } from './base.ts';

/** A node without a heartbeat for this long is offline. */
export const ONLINE_SECONDS = 45;

export class NodeState extends BaseModel {
  static override tableName = 'node_state';
  static override idColumn = 'node_id';

  declare nodeId: string;
  declare lastSeenAt: Date | null;
  declare features: string[];
  declare authError: string | null;
}
