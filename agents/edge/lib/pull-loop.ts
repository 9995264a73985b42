// One pull at a time, repeated while there is more to fetch, with back-off after failures.
import { backoffDelay, sleep } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';

export interface PullLoopOptions {
  name: string;
  log: Log;
  /** Fetches once; true when another round is due at once. */
  pull: (signal: AbortSignal) => Promise<boolean>;
  /** Called after the last round of a request, whether it succeeded or not. */
  settled: () => void;
}

export class PullLoop {
  private readonly options: PullLoopOptions;
  private readonly stopping = new AbortController();
  private requested = false;
  private delay: { timer: NodeJS.Timeout; until: number } | undefined;
  private work: Promise<void> | undefined;
  private wakeUp: AbortController | undefined;
  /** Why the last round failed; "" after a success. */
  problem = '';

  constructor(options: PullLoopOptions) {
    this.options = options;
  }

  /** Whether changes must wait because a pull is under way. */
  get busy(): boolean {
    return this.work !== undefined;
  }

  /** Asks for a pull now or after `delayMs`; of several delayed ones the earliest counts. */
  request(delayMs = 0): void {
    if (this.stopping.signal.aborted) return;
    if (delayMs > 0) {
      const until = performance.now() + delayMs;
      if (this.delay && this.delay.until <= until) return;
      clearTimeout(this.delay?.timer);
      const timer = setTimeout(() => {
        this.delay = undefined;
        this.request();
      }, delayMs);
      this.delay = { timer, until };
      return;
    }
    this.requested = true;
    this.work ??= this.run().finally(() => {
      this.work = undefined;
      // Asked for after the last round, a moment before here.
      if (this.requested) this.request();
      this.options.settled();
    });
  }

  /** The connection is back: do not wait for the back-off. */
  hurry(): void {
    this.wakeUp?.abort();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.delay?.timer);
    this.wakeUp?.abort();
    await this.work;
  }

  private async run(): Promise<void> {
    let failures = 0;
    while (this.requested && !this.stopping.signal.aborted) {
      this.requested = false;
      try {
        if (await this.options.pull(this.stopping.signal)) this.requested = true;
        failures = 0;
        this.problem = '';
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        const delayMs = backoffDelay(failures++);
        this.problem = errorText(error);
        this.options.log.warn('pull failed', { feed: this.options.name, error, retryInMs: delayMs });
        this.requested = true;
        this.wakeUp = new AbortController();
        await sleep(delayMs, this.wakeUp.signal);
      }
    }
  }
}
