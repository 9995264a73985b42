// What differs between the kinds of keys that the nodes of a cluster share. How they are fetched, kept and given to the data
// plane is the same for all.
import type { Capability } from '../../../contract/capabilities.ts';
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';

export interface Keys {
  /** Rises with each rotation; 0 = none. */
  version: bigint;
}

export interface KeyKind<K extends Keys> {
  /** As it stands in sentences: "challenge keys". */
  name: string;
  /** A data plane without it is not given any; undefined: every one is. */
  capability: Capability | undefined;
  /** Why keys cannot be used, without quoting them; undefined when they can. */
  problemOf(keys: K): string | undefined;
  /** As they stand in the file, without the version. */
  toStored(keys: K): unknown;
  /** Throws on anything else than what `toStored` gave. */
  fromStored(version: bigint, stored: unknown): K;
  /** Those of the console; undefined while it has none. */
  fetch(channel: NodeChannel, signal: AbortSignal): Promise<K | undefined>;
  push(client: EdgeClient, keys: K): Promise<void>;
  /** Version that the data plane uses; 0 = none. */
  versionOf(status: GetStatusResponse): bigint;
}
