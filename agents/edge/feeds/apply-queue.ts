// Puts what a feed brought in force, one after another. What fails is tried again: nothing behind it overtakes it.
import { backoffDelay, sleep } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';

interface Work {
  run: () => void | Promise<void>;
  done: () => void;
}

export class ApplyQueue {
  private readonly name: string;
  private readonly log: Log;
  private readonly stopping = new AbortController();
  private pause = new AbortController();
  private waiting: Work[] = [];
  private working: Promise<void> | undefined;
  /** Why what is next is not in force; "" when nothing fails. */
  problem = '';

  constructor(name: string, log: Log) {
    this.name = name;
    this.log = log;
  }

  get isIdle(): boolean {
    return this.working === undefined;
  }

  /** `done`: what was to be done is in force, and everything before it. */
  add(run: Work['run'], done: Work['done']): void {
    this.waiting.push({ run, done });
    this.working ??= this.work().finally(() => {
      this.working = undefined;
    });
  }

  /** Forgets what waits: what is added next makes it worthless. */
  clear(): void {
    this.waiting = [];
  }

  /** What failed may succeed now. */
  hurry(): void {
    this.pause.abort();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.working;
  }

  private async work(): Promise<void> {
    let failures = 0;
    // Whoever adds has the promise before it ends.
    await Promise.resolve();
    for (let next = this.waiting[0]; next && !this.stopping.signal.aborted; next = this.waiting[0]) {
      try {
        await next.run();
      } catch (error) {
        this.problem = `${this.name} not applied: ${errorText(error)}`;
        const retryInMs = backoffDelay(failures++);
        this.log.warn('change of a feed not applied', { feed: this.name, error, retryInMs });
        this.pause = new AbortController();
        await sleep(retryInMs, AbortSignal.any([this.stopping.signal, this.pause.signal]));
        continue;
      }
      failures = 0;
      this.problem = '';
      // It may have been cleared meanwhile.
      if (this.waiting[0] === next) this.waiting.shift();
      next.done();
    }
  }
}
