// Gives the challenge keys to each process of Caddy, which may have read older ones from disk, and again whenever they change.
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { ChallengeKeys } from '../../../proto/gen/svc/node/v1/security_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { ChallengeKeyStore } from './challenge-keys.ts';

export interface KeyPusherOptions {
  store: ChallengeKeyStore;
  client: EdgeClient;
  log: Log;
  /** The data plane uses other keys now. */
  pushed: () => void;
}

export class KeyPusher {
  private readonly options: KeyPusherOptions;
  private instance = '';
  /** What the process has; undefined when it is not known to have the ones held. */
  private given: ChallengeKeys | undefined;
  private running: Promise<void> | undefined;
  /** Why the data plane does not have the keys; "" when it has. */
  problem = '';

  constructor(options: KeyPusherOptions) {
    this.options = options;
  }

  /** Version the data plane uses; 0 = none. */
  get version(): bigint {
    return this.given?.version ?? 0n;
  }

  /** What Caddy says about itself; it decides whether it needs the keys. */
  onStatus(status: GetStatusResponse): void {
    const isNew = status.instanceId !== this.instance;
    this.instance = status.instanceId;
    if (isNew || (!this.running && status.challengeKeysVersion !== this.version)) this.given = undefined;
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

  private async run(keys: ChallengeKeys, instance: string): Promise<void> {
    const { client, log, pushed } = this.options;
    try {
      await client.setChallengeKeys({ keys });
      this.problem = '';
    } catch (error) {
      const problem = `the data plane has no challenge keys: ${errorText(error)}`;
      if (problem !== this.problem) log.warn('challenge keys not pushed', { error: errorText(error) });
      this.problem = problem;
      return;
    }
    if (this.instance !== instance) return;
    this.given = keys;
    pushed();
  }
}
