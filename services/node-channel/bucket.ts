/** A budget that refills evenly: full at first, and after a minute without use. */
export class Bucket {
  readonly #perMinute: number;
  #left: number;
  #at = performance.now();

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
    this.#left = perMinute;
  }

  /** Whether one is left. */
  get open(): boolean {
    return this.#refilled() >= 1;
  }

  /** Whether it says no more than a new one. */
  get full(): boolean {
    return this.#refilled() >= this.#perMinute;
  }

  /** Takes also what is not there: a single large use is let through, and the next one waits for it. */
  spend(amount: number): void {
    this.#refilled();
    this.#left -= amount;
  }

  #refilled(): number {
    const now = performance.now();
    this.#left = Math.min(this.#perMinute, this.#left + ((now - this.#at) / 60_000) * this.#perMinute);
    this.#at = now;
    return this.#left;
  }
}
