// An answer good for a while, read when somebody asks: whoever asks meanwhile shares it, so that fifty open pages cost
// what one does.

export class Recent<T> {
  readonly #read: () => Promise<T>;
  readonly #ms: number;
  #latest: { until: number; answer: Promise<T> } | null = null;

  /** `ms`: how old an answer may be. */
  constructor(ms: number, read: () => Promise<T>) {
    this.#ms = ms;
    this.#read = read;
  }

  get(): Promise<T> {
    const now = performance.now();
    if (this.#latest && this.#latest.until > now) return this.#latest.answer;
    const latest = { until: now + this.#ms, answer: this.#read() };
    this.#latest = latest;
    // A failure is for those who shared it; the next one asks again.
    latest.answer.catch(() => {
      if (this.#latest === latest) this.#latest = null;
    });
    return latest.answer;
  }
}
