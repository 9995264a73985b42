// First come, first served per key: the next task of a key starts when the one before has ended.
import { fail } from '../contract/errors.ts';

interface Line {
  tail: Promise<unknown>;
  /** Tasks that have not ended: one runs, the others wait. */
  tasks: number;
}

export class KeyedQueue {
  readonly #mostWaiting: number;
  readonly #lines = new Map<string, Line>();

  /** `mostWaiting`: tasks of one key that may wait, beside the one that runs. */
  constructor(mostWaiting = Number.POSITIVE_INFINITY) {
    this.#mostWaiting = mostWaiting;
  }

  /**
   * Runs `task` after the tasks queued before it under the same key; answers its result. Throws SERVICE_UNAVAILABLE at once,
   * and runs nothing, where as many wait as may.
   */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { tail: Promise.resolve(), tasks: 0 };
    if (line.tasks > this.#mostWaiting) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    const mine = line.tail.then(task);
    line.tail = mine.catch(() => undefined);
    line.tasks++;
    this.#lines.set(key, line);
    try {
      return await mine;
    } finally {
      line.tasks--;
      if (line.tasks === 0) this.#lines.delete(key);
    }
  }
}
