// Requests in a row, counted in memory: what the rate limit falls back to.

interface Count {
  count: number;
  /** Of the last request that counted. */
  at: number;
}

/** Keys remembered at most; the one that was quiet for longest goes first. */
const MOST_KEYS = 10_000;

export class LocalCounts {
  readonly #counts = new Map<string, Count>();
  readonly #limit: number;
  readonly #restartMs: number;

  constructor(limit: number, restartMs: number) {
    this.#limit = limit;
    this.#restartMs = restartMs;
  }

  /** Counts a request; answers 0, or the milliseconds to wait for a request that is refused and does not count. */
  take(key: string, now: number): number {
    const known = this.#counts.get(key);
    const running = known !== undefined && now - known.at <= this.#restartMs ? known.count : 0;
    if (running >= this.#limit) return Math.max(1, known!.at + this.#restartMs - now);
    // Set anew, so that the order of the map is the order of the last requests.
    this.#counts.delete(key);
    this.#counts.set(key, { count: running + 1, at: now });
    if (this.#counts.size > MOST_KEYS) this.#counts.delete(this.#counts.keys().next().value as string);
    return 0;
  }
}
