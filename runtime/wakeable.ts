// A sleep that others can end: a wake-up that comes while nobody sleeps ends the next sleep at once.

export class Wakeable {
  #pending = false;
  #ended = false;
  #resolve: ((byWake: boolean) => void) | null = null;

  /** Ends the current sleep, or the next one. */
  wake(): void {
    this.#pending = true;
    this.#resolve?.(true);
  }

  /** No sleep lasts any more. */
  end(): void {
    this.#ended = true;
    this.#resolve?.(false);
  }

  /** Sleeps `ms`, less when woken unless `wakes` is false; answers whether it was woken. */
  async sleep(ms: number, wakes = true): Promise<boolean> {
    if (this.#ended) return false;
    if (wakes && this.#pending) {
      this.#pending = false;
      return true;
    }
    const woken = await new Promise<boolean>((resolve) => {
      const finish = (byWake: boolean) => {
        if (byWake && !wakes) return;
        clearTimeout(timer);
        this.#resolve = null;
        resolve(byWake);
      };
      const timer = setTimeout(() => finish(false), ms);
      this.#resolve = finish;
    });
    if (wakes) this.#pending = false;
    return woken;
  }
}
