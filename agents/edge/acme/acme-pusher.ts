// Gives each process of Caddy what certificate authorities are to be answered: everything first, changes from then on. One
// call at a time; what waits meanwhile goes with the next.
import { create } from '@bufbuild/protobuf';
import type { Capability } from '../../../contract/capabilities.ts';
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import {
  type AcmeBatch,
  type AcmePosition,
  type AcmeToken,
  AcmeTokenSchema,
} from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import { type AcmeTokens, tokenKey } from './acme-tokens.ts';

const NEEDED: Capability = 'http01-v1';

export interface AcmePusherOptions {
  tokens: AcmeTokens;
  client: Pick<EdgeClient, 'setAcmeTokens'>;
  clock: ServerClock;
  log: Log;
  /** The data plane answers from this now. */
  applied: (position: AcmePosition) => void;
}

export class AcmePusher {
  private readonly options: AcmePusherOptions;
  /** The process; "" while it is not known, or answers nobody. */
  private instance = '';
  /** It has everything but what waits. */
  private isComplete = false;
  private readonly upserts = new Map<string, AcmeToken>();
  private readonly removed = new Map<string, AcmeToken>();
  private running: Promise<void> | undefined;
  /** What the process answers from; undefined while that is not known. */
  position: AcmePosition | undefined;
  /** Why the process does not have it; "" when it has. */
  problem = '';

  constructor(options: AcmePusherOptions) {
    this.options = options;
  }

  /** What Caddy says about itself. */
  onStatus(status: GetStatusResponse): void {
    const instance = status.capabilities.includes(NEEDED) ? status.instanceId : '';
    if (instance !== this.instance) {
      this.instance = instance;
      this.forget();
    }
    this.push();
  }

  changed({ upserts, removed }: AcmeBatch): void {
    for (const token of removed) {
      this.upserts.delete(tokenKey(token));
      this.removed.set(tokenKey(token), create(AcmeTokenSchema, { host: token.host, token: token.token }));
    }
    for (const token of upserts) {
      this.removed.delete(tokenKey(token));
      this.upserts.set(tokenKey(token), token);
    }
    this.push();
  }

  replaced(): void {
    this.isComplete = false;
    this.push();
  }

  async stop(): Promise<void> {
    this.instance = '';
    await this.running;
  }

  /** What the process has is not known any more. */
  private forget(): void {
    this.isComplete = false;
    this.position = undefined;
  }

  private push(): void {
    const { position } = this.options.tokens;
    // Before the console said anything, what a process knows from a former agent is as good as it gets.
    if (this.running || this.instance === '' || position.epoch === 0n) return;
    if (this.isComplete && position === this.position) return;
    this.running = this.run(position, this.instance).finally(() => {
      this.running = undefined;
      // It changed meanwhile; after a failure the next status tries again.
      if (this.problem === '') this.push();
    });
  }

  private async run(position: AcmePosition, instance: string): Promise<void> {
    const { tokens, client, clock, log, applied } = this.options;
    const offsetMs = Math.round(clock.offsetMs());
    const complete = !this.isComplete;
    const all = complete ? tokens.live(Date.now() + offsetMs) : [...this.upserts.values()];
    const upserts = all.map((token) =>
      create(AcmeTokenSchema, { ...token, expiresAtMs: token.expiresAtMs - BigInt(offsetMs) }),
    );
    const removed = complete ? [] : [...this.removed.values()];
    this.upserts.clear();
    this.removed.clear();
    this.isComplete = true;
    try {
      await client.setAcmeTokens({ complete, upserts, removed });
      this.problem = '';
    } catch (error) {
      const problem = `the data plane does not accept HTTP-01 responses: ${errorText(error)}`;
      if (problem !== this.problem) log.warn('HTTP-01 responses not pushed', { error: errorText(error) });
      this.problem = problem;
      this.forget();
      return;
    }
    if (this.instance !== instance) return;
    this.position = position;
    applied(position);
  }
}
