// Messages that could not be decoded: skipped, counted and said, because asking for them again brings the same bytes.
import { errorText, type Log } from '../../kit/log.ts';

/** So long after the last one it is still worth saying. */
const SHOWN_MS = 60 * 60_000;
const LOG_EVERY_MS = 60_000;

export class SkippedMessages {
  private readonly what: string;
  private readonly log: Log;
  private readonly now: () => number;
  private lastAt = Number.NEGATIVE_INFINITY;
  private loggedAt = Number.NEGATIVE_INFINITY;
  /** Since the start of the process. */
  count = 0;

  constructor(what: string, log: Log, now: () => number = () => performance.now()) {
    this.what = what;
    this.log = log;
    this.now = now;
  }

  /** Why something may be missing; "" when nothing was skipped lately. */
  get message(): string {
    if (this.now() - this.lastAt > SHOWN_MS) return '';
    return `${this.what} could not be decoded and were skipped: ${this.count}`;
  }

  /** One more was skipped; logged once a minute at most. */
  note(error: unknown): void {
    this.count++;
    this.lastAt = this.now();
    if (this.lastAt - this.loggedAt < LOG_EVERY_MS) return;
    this.loggedAt = this.lastAt;
    this.log.warn('message not decodable, skipped', {
      what: this.what,
      skipped: this.count,
      error: errorText(error),
    });
  }
}
