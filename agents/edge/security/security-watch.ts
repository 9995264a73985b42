// Follows one process of Caddy: gives a new one back what a former one had, then reads what it says. Batches are
// acknowledged by the next stream, which is opened a second after the first one that waits for it.
import type { SecurityBatch } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { backoffDelay, sleep } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import { EdgeError } from '../caddy/edge-error.ts';

const ACKNOWLEDGE_MS = 1000;
const ACKNOWLEDGE_BATCHES = 256;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 2000;

export interface SecurityWatchOptions {
  client: EdgeClient;
  instanceId: string;
  log: Log;
  /** Whether this process has what former ones had. */
  isRestored: boolean;
  /** Gives the process what former ones had. */
  restore: () => Promise<void>;
  /** Number of the last batch of this process on disk; awaited before it is acknowledged. */
  stored: () => Promise<bigint>;
  take: (batch: SecurityBatch) => void;
  /** A batch that cannot be decoded was left out. */
  skipped: (error: unknown) => void;
  /** The stream broke: the process may be gone. */
  broken: () => void;
}

export class SecurityWatch {
  private readonly options: SecurityWatchOptions;
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;
  /** Why nothing is heard; "" while all is well. */
  problem = '';

  constructor(options: SecurityWatchOptions) {
    this.options = options;
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    const { client, log, instanceId, broken } = this.options;
    let isRestored = this.options.isRestored;
    for (let failures = 0; !signal.aborted; ) {
      try {
        // Behind the socket there may be another process by now, which has a watch of its own.
        if (failures > 0 && (await client.getStatus()).instanceId !== instanceId) {
          broken();
          return;
        }
        if (!isRestored) await this.options.restore();
        isRestored = true;
        if (await this.follow()) failures = 0;
        this.problem = '';
      } catch (error) {
        if (signal.aborted) return;
        const problem = `no attack reports from the data plane: ${errorText(error)}`;
        if (problem !== this.problem)
          log.warn('data plane security stream ended', { instanceId, error: errorText(error) });
        this.problem = problem;
        if (error instanceof EdgeError && error.code === 'unimplemented') return;
        broken();
        await sleep(backoffDelay(failures++, Math.random, MIN_RETRY_MS, MAX_RETRY_MS), signal);
      }
    }
  }

  /** One stream, until there is something to acknowledge; true when anything was received. */
  private async follow(): Promise<boolean> {
    const { client, instanceId, stored, take, skipped } = this.options;
    const stream = new AbortController();
    const signal = AbortSignal.any([stream.signal, this.stopping.signal]);
    let timer: NodeJS.Timeout | undefined;
    let received = 0;
    try {
      const after = await stored();
      for await (const batch of client.watchSecurity({ instanceId, after }, signal, skipped)) {
        take(batch);
        timer ??= setTimeout(() => stream.abort(), ACKNOWLEDGE_MS);
        if (++received >= ACKNOWLEDGE_BATCHES) break;
      }
      // Caddy ends a stream only when it ends itself.
      if (received === 0 && !signal.aborted) throw new EdgeError('unavailable', 'the data plane ended the stream');
      return received > 0;
    } catch (error) {
      if (stream.signal.aborted && !this.stopping.signal.aborted) return true;
      throw error;
    } finally {
      clearTimeout(timer);
      stream.abort();
    }
  }
}
