// When keys were last used, at a resolution of one minute: collected here, written in batches by the owner.

const MINUTE_MS = 60_000;
const FLUSH_MS = 10_000;

export type WriteLastUsed = (keys: { id: string; at: string }[]) => Promise<void>;

export class LastUsed {
  /** Start of the minute already told, by key. */
  readonly #told = new Map<string, number>();
  readonly #waiting = new Map<string, number>();
  readonly #write: WriteLastUsed;
  readonly #timer: NodeJS.Timeout;

  constructor(write: WriteLastUsed, onError: (error: unknown) => void) {
    this.#write = write;
    this.#timer = setInterval(() => this.flush().catch(onError), FLUSH_MS).unref();
  }

  touch(id: string): void {
    const now = Date.now();
    const minute = now - (now % MINUTE_MS);
    if (this.#told.get(id) === minute) return;
    this.#told.set(id, minute);
    this.#waiting.set(id, now);
  }

  /** Writes what waits; what could not be written is written with the next use. */
  async flush(): Promise<void> {
    if (this.#waiting.size === 0) return;
    const keys = [...this.#waiting].map(([id, at]) => ({ id, at: new Date(at).toISOString() }));
    this.#waiting.clear();
    const oldest = Date.now() - 2 * MINUTE_MS;
    for (const [id, minute] of this.#told) if (minute < oldest) this.#told.delete(id);
    try {
      await this.#write(keys);
    } catch (error) {
      for (const { id } of keys) this.#told.delete(id);
      throw error;
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }
}
