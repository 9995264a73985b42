// Gives keys of the cluster to each process of Caddy, which may have read older ones from disk, and again whenever they change.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { KeyKind, Keys } from './key-kind.ts';
import type { KeyStore } from './key-store.ts';

export interface KeyPusherOptions<K extends Keys> {
  kind: KeyKind<K>;
  store: KeyStore<K>;
  client: EdgeClient;
  log: Log;
  /** The data plane uses other keys now. */
  pushed: () => void;
}

export class KeyPusher<K extends Keys> {
  private readonly options: KeyPusherOptions<K>;
  /** The process; "" while it is not known, or needs no such keys. */
  private instance = '';
  /** What the process has; undefined when it is not known to have the stored ones. */
  private given: K | undefined;
  private running: Promise<void> | undefined;
  /** Why the data plane does not have the keys; "" when it has. */
  problem = '';

  constructor(options: KeyPusherOptions<K>) {
    this.options = options;
  }

  /** Version the data plane uses; 0 = none. */
  get version(): bigint {
    return this.given?.version ?? 0n;
  }

  /** What Caddy says about itself; it decides whether it needs the keys. */
  onStatus(status: GetStatusResponse): void {
    const { kind } = this.options;
    const able = kind.capability === undefined || status.capabilities.includes(kind.capability);
    const instance = able ? status.instanceId : '';
    const isNew = instance !== this.instance;
    this.instance = instance;
    if (isNew || (!this.running && kind.versionOf(status) !== this.version)) this.given = undefined;
    this.push();
  }

  /** Pushes the keys unless Caddy has them; one call at a time. */
  push(): void {
    const { keys } = this.options.store;
    if (this.running || this.instance === '' || !keys || keys === this.given) return;
    this.running = this.run(keys, this.instance).finally(() => {
      this.running = undefined;
      // They changed meanwhile; after a failure the next status tries again.
      if (this.problem === '') this.push();
    });
  }

  async stop(): Promise<void> {
    this.instance = '';
    await this.running;
  }

  private async run(keys: K, instance: string): Promise<void> {
    const { client, log, pushed, kind } = this.options;
    try {
      await kind.push(client, keys);
      this.problem = '';
    } catch (error) {
      const problem = `the data plane did not accept the ${kind.name}: ${errorText(error)}`;
      if (problem !== this.problem) log.warn(`${kind.name} not pushed`, { error: errorText(error) });
      this.problem = problem;
      return;
    }
    if (this.instance !== instance) return;
    this.given = keys;
    pushed();
  }
}
