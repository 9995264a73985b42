// Lookups that found nothing, counted by client address in this process: each key or session that somebody makes up costs
// the database a statement, and an address has only so many of them. What is found costs its address nothing.
import { type ErrorCode, fail } from '../../contract/errors.ts';

/** In a minute that begins with the first of them. */
export const MOST_FAILURES = 120;
const WINDOW_MS = 60_000;
/** Addresses remembered at most; the one whose minute began first goes first. */
const MOST_ADDRESSES = 10_000;

interface Tally {
  failures: number;
  /** When its minute ends. */
  until: number;
  /** Lookups under way: any of them may fail. */
  running: number;
  /** Told at the end of each. */
  waiting: (() => void)[];
}

export class FailedLookups {
  readonly #tallies = new Map<string, Tally>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * What the question finds; null for nothing. Throws the code with `retryAfterSeconds` instead of asking when the address
   * has had its failures; when those under way could use them up, waits for one of them.
   */
  async ask<T>(address: string, code: ErrorCode, question: () => Promise<T | null>): Promise<T | null> {
    const tally = await this.#admit(address, code);
    try {
      const found = await question();
      if (found === null) tally.failures++;
      return found;
    } finally {
      tally.running--;
      for (const wake of tally.waiting.splice(0)) wake();
      if (tally.running === 0 && tally.failures === 0 && this.#tallies.get(address) === tally)
        this.#tallies.delete(address);
    }
  }

  /** The address's tally, with the lookup in it: others judge by it at once. */
  async #admit(address: string, code: ErrorCode): Promise<Tally> {
    for (;;) {
      const tally = this.#tallyOf(address);
      if (tally.failures + tally.running < MOST_FAILURES) {
        tally.running++;
        return tally;
      }
      const left = tally.until - this.#now();
      if (tally.failures >= MOST_FAILURES) fail(code, { retryAfterSeconds: Math.max(1, Math.ceil(left / 1000)) });
      await new Promise<void>((resolve) => tally.waiting.push(resolve));
    }
  }

  #tallyOf(address: string): Tally {
    const now = this.#now();
    const known = this.#tallies.get(address);
    if (known !== undefined) {
      if (now < known.until) return known;
      known.failures = 0;
      known.until = now + WINDOW_MS;
      // Set anew, so that the order of the map is the order of the minutes.
      this.#tallies.delete(address);
      this.#tallies.set(address, known);
      return known;
    }
    const tally: Tally = { failures: 0, until: now + WINDOW_MS, running: 0, waiting: [] };
    this.#tallies.set(address, tally);
    if (this.#tallies.size > MOST_ADDRESSES) this.#tallies.delete(this.#tallies.keys().next().value as string);
    return tally;
  }
}
