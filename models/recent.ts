// An answer good for a while, read when somebody asks: whoever asks meanwhile shares it, so that fifty open pages cost
// what one does.

interface Known<T> {
  until: number;
  answer: Promise<T>;
}

export class Recent<T> {
  readonly #ms: number;
  /** By what was asked for, oldest first. */
  readonly #known = new Map<string, Known<T>>();

  /** `ms`: how old an answer may be. */
  constructor(ms: number) {
    this.#ms = ms;
  }

  /** The answer to what `key` names, as `read` gives it where none is young enough. */
  get(read: () => Promise<T>, key = ''): Promise<T> {
    const now = performance.now();
    const known = this.#known.get(key);
    if (known && known.until > now) return known.answer;
    this.#forget(now);
    const latest = { until: now + this.#ms, answer: read() };
    this.#known.set(key, latest);
    // A failure is for those who shared it; the next one asks again.
    latest.answer.catch(() => {
      if (this.#known.get(key) === latest) this.#known.delete(key);
    });
    return latest.answer;
  }

  /** Nobody may ever ask again for what one of them names. */
  #forget(now: number): void {
    for (const [key, { until }] of this.#known) {
      if (until > now) return;
      this.#known.delete(key);
    }
  }
}
