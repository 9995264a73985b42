// Keys of one kind that the nodes of the cluster share: from the console, on disk, in the data plane.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import { KeyFeed } from './key-feed.ts';
import type { KeyKind, Keys } from './key-kind.ts';
import { KeyPusher } from './key-pusher.ts';
import { KeyStore } from './key-store.ts';

export interface SharedKeysOptions {
  path: string;
  clusterId: string;
  client: EdgeClient;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** The data plane uses other keys now. */
  pushed: () => void;
}

export class SharedKeys<K extends Keys> {
  private readonly store: KeyStore<K>;
  private readonly feed: KeyFeed<K>;
  private readonly pusher: KeyPusher<K>;

  /** Reads what is on disk. */
  constructor(kind: KeyKind<K>, { path, clusterId, client, log, channel, pushed }: SharedKeysOptions) {
    this.store = new KeyStore({ kind, path, clusterId, log });
    this.pusher = new KeyPusher({ kind, store: this.store, client, log, pushed });
    this.feed = new KeyFeed({ kind, store: this.store, log, channel, changed: () => this.pusher.push() });
  }

  /** Version the data plane uses; 0 = none. */
  get version(): bigint {
    return this.pusher.version;
  }

  /** The first thing that is wrong; "" when all is well. */
  get message(): string {
    return this.store.problem || this.feed.message || this.pusher.problem;
  }

  onStatus(status: GetStatusResponse): void {
    this.pusher.onStatus(status);
  }

  onConnected(): void {
    this.feed.onConnected();
  }

  /** Version of the console's keys; 0 = it has none. */
  onVersion(version: bigint): void {
    this.feed.onVersion(version);
  }

  async stop(): Promise<void> {
    await Promise.all([this.feed.stop(), this.pusher.stop()]);
  }
}
