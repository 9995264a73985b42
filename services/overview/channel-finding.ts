// What the last check of the node channel found. Whoever asks gets what is known and is never kept waiting: a check can
// take seconds.
import type { AttentionFacts } from './attention.ts';

const GOOD_MS = 30_000;

export class ChannelFinding {
  readonly #check: () => Promise<NonNullable<AttentionFacts['channel']>>;
  #result: AttentionFacts['channel'] = null;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(check: () => Promise<NonNullable<AttentionFacts['channel']>>) {
    this.#check = check;
  }

  /** Null before the first check has ended. */
  known(): AttentionFacts['channel'] {
    if (performance.now() - this.#askedAt >= GOOD_MS) {
      this.#askedAt = performance.now();
      this.#check().then(
        (result) => {
          this.#result = result;
        },
        () => {
          // It could not be asked: nothing is known.
          this.#result = null;
        },
      );
    }
    return this.#result;
  }
}
