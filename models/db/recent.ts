// An answer good for a while, read when somebody asks: whoever asks meanwhile shares it, so that fifty open pages cost
// what one does.
import { AsyncLocalStorage } from 'node:async_hooks';

/** Whoever shares an answer does not lose it with the request that asked first (runtime/request-scope.ts). */
const outsideRequests = AsyncLocalStorage.snapshot();

interface Known<T> {
  until: number;
  answer: Promise<T>;
}

export class Recent<T> {
  readonly #ms: number;
  /** By what was asked for, oldest first. */
  readonly #known = new Map<string, Known<T>>();
  /** Of those who want no older answer than their question: the read under way, and the one after it. */
  readonly #running = new Map<string, Promise<T>>();
  readonly #following = new Map<string, Promise<T>>();

  /** `ms`: how old an answer may be. */
  constructor(ms: number) {
    this.#ms = ms;
  }

  /** The answer to what `key` names, as `read` gives it where none is young enough. */
  get(read: () => Promise<T>, key = ''): Promise<T> {
    const known = this.#known.get(key);
    if (known && known.until > performance.now()) return known.answer;
    return this.#read(read, key);
  }

  /**
   * An answer that is not older than this question. One read at a time: whoever asks while one is under way shares the
   * one after it, since what is asked about may have come after the one under way had looked.
   */
  now(read: () => Promise<T>, key = ''): Promise<T> {
    const running = this.#running.get(key);
    if (!running) return this.#readAlone(read, key);
    const begin = () => {
      this.#following.delete(key);
      return this.#readAlone(read, key);
    };
    const following = this.#following.get(key) ?? running.then(begin, begin);
    this.#following.set(key, following);
    return following;
  }

  #readAlone(read: () => Promise<T>, key: string): Promise<T> {
    const done = () => {
      if (this.#running.get(key) === answer) this.#running.delete(key);
    };
    const answer = this.#read(read, key);
    this.#running.set(key, answer);
    answer.then(done, done);
    return answer;
  }

  #read(read: () => Promise<T>, key: string): Promise<T> {
    const now = performance.now();
    this.#forget(now);
    const latest = { until: now + this.#ms, answer: outsideRequests(read) };
    // Deleted first: the oldest stand first.
    this.#known.delete(key);
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
