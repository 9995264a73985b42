// A bounded number of tasks at once. The callers that wait take turns: a caller with a long line waits for its own line,
// and delays every other caller by one task at most.
import { Code, ConnectError } from '@connectrpc/connect';

/** A caller that waited longer has given up, or asks again anyway. */
const LONGEST_WAIT_MS = 10_000;

export interface TurnLimits {
  /** Tasks that run at once. */
  running: number;
  /** Tasks that wait, of all callers. */
  waiting: number;
  /** Tasks of one caller that wait. */
  waitingEach: number;
}

export class Turns {
  readonly #limits: TurnLimits;
  /** By caller; the first caller is served next, and goes to the end. */
  readonly #lines = new Map<string, (() => void)[]>();
  #waiting = 0;
  #running = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Throws resource_exhausted when the line of the caller, or of all, is full, and for a task whose turn comes after ten seconds. */
  async take<T>(caller: string, task: () => Promise<T>): Promise<T> {
    const asked = performance.now();
    if (this.#running >= this.#limits.running) await this.#wait(caller);
    else this.#running += 1;
    try {
      if (performance.now() - asked > LONGEST_WAIT_MS) throw tooMany();
      return await task();
    } finally {
      this.#next();
    }
  }

  #wait(caller: string): Promise<void> {
    const line = this.#lines.get(caller) ?? [];
    if (line.length >= this.#limits.waitingEach || this.#waiting >= this.#limits.waiting) throw tooMany();
    if (line.length === 0) this.#lines.set(caller, line);
    this.#waiting += 1;
    return new Promise((resolve) => line.push(resolve));
  }

  /** Hands the place on; the number of running tasks stays the same then. */
  #next(): void {
    const [first] = this.#lines;
    if (!first) {
      this.#running -= 1;
      return;
    }
    const [caller, line] = first;
    this.#lines.delete(caller);
    this.#waiting -= 1;
    const begin = line.shift()!;
    if (line.length > 0) this.#lines.set(caller, line);
    begin();
  }
}

function tooMany(): ConnectError {
  return new ConnectError('too many requests; retry later', Code.ResourceExhausted);
}
