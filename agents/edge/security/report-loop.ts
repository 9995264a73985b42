// Reports to the console every five seconds while there is something to say, and at once when it is the first after a
// quiet period. What was not taken is kept and tried again.
import { errorText, type Log } from '../../kit/log.ts';

const PERIOD_MS = 5000;
/** Collects what belongs together. */
const COLLECT_MS = 20;

export interface ReportLoopOptions {
  name: string;
  log: Log;
  /** Whether there is something to say and somebody to say it to. */
  due: () => boolean;
  /** Says it all; rejects when the console does not take it. */
  send: (signal: AbortSignal) => Promise<void>;
}

export class ReportLoop {
  private readonly options: ReportLoopOptions;
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private lastSent = Number.NEGATIVE_INFINITY;
  /** Why the last report failed; "" after a success. */
  problem = '';

  constructor(options: ReportLoopOptions) {
    this.options = options;
  }

  /** There is something to say, or somebody to say it to again. */
  soon(): void {
    if (this.running || this.timer || this.stopping.signal.aborted || !this.options.due()) return;
    const delayMs = Math.max(COLLECT_MS, this.lastSent + PERIOD_MS - performance.now());
    this.timer = setTimeout(() => this.run(), delayMs);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.running;
  }

  private run(): void {
    this.timer = undefined;
    if (!this.options.due()) return;
    this.lastSent = performance.now();
    this.running = this.options
      .send(this.stopping.signal)
      .then(() => {
        this.problem = '';
      })
      .catch((error: unknown) => {
        const problem = errorText(error);
        if (problem !== this.problem && !this.stopping.signal.aborted)
          this.options.log.warn('report not sent, kept for later', { what: this.options.name, error: problem });
        this.problem = problem;
      })
      .finally(() => {
        this.running = undefined;
        this.soon();
      });
  }
}
