// The responders that are asked. One that is down is not asked for a while, so that it costs neither others nor itself more
// than a few questions.
import { backoffDelay } from '../../../kit/backoff.ts';

/** Questions without any answer in a row after which a responder is taken to be down. */
const DOWN_AFTER = 3;
export const RETRY_MIN_MS = 60_000;
export const RETRY_MAX_MS = 60 * 60_000;

export class Responder {
  readonly host: string;
  private unanswered = 0;
  private pauses = 0;
  /** performance.now() before which nothing is asked of it. */
  private notBefore = 0;

  constructor(host: string) {
    this.host = host;
  }

  get isPaused(): boolean {
    return performance.now() < this.notBefore;
  }

  answered(): void {
    this.unanswered = 0;
    this.pauses = 0;
  }

  /** Answers for how long it is not asked from now on, ms; undefined when that goes on as it was. */
  failed(): number | undefined {
    if (++this.unanswered < DOWN_AFTER || this.isPaused) return undefined;
    const pauseMs = backoffDelay(this.pauses++, Math.random, RETRY_MIN_MS, RETRY_MAX_MS);
    this.notBefore = performance.now() + pauseMs;
    return pauseMs;
  }
}

/** Responders by their hosts; those that nothing names any more are forgotten. */
export class Responders {
  private readonly known = new Map<string, Responder>();

  /** That of an address. */
  of(url: string): Responder {
    const { host } = new URL(url);
    let responder = this.known.get(host);
    if (!responder) {
      responder = new Responder(host);
      this.known.set(host, responder);
    }
    return responder;
  }

  keepOnly(hosts: ReadonlySet<string>): void {
    for (const host of this.known.keys()) if (!hosts.has(host)) this.known.delete(host);
  }
}
