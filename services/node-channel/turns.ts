import { Code, ConnectError } from '@connectrpc/connect';

/** Who waited longer has given up, or asks again anyway. */
const LONGEST_WAIT_MS = 10_000;

/** Lets a bounded number of tasks run at once; the others wait in line, which is bounded too. */
export class Turns {
  readonly #limit: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limit: number, maxWaiting: number) {
    this.#limit = limit;
    this.#maxWaiting = maxWaiting;
  }

  /** Throws resource_exhausted when the line is full, and for a task whose turn comes after ten seconds. */
  async take<T>(task: () => Promise<T>): Promise<T> {
    const asked = performance.now();
    if (this.#running >= this.#limit) {
      if (this.#waiting.length >= this.#maxWaiting)
        throw new ConnectError('too many requests; retry later', Code.ResourceExhausted);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      if (performance.now() - asked > LONGEST_WAIT_MS)
        throw new ConnectError('too many requests; retry later', Code.ResourceExhausted);
      return await task();
    } finally {
      const next = this.#waiting.shift();
      // Whoever waits takes over the place; the count stays.
      if (next) next();
      else this.#running -= 1;
    }
  }
}
