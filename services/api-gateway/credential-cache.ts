// What the gateway remembers of keys and sessions, so that a request rarely asks the database: for up to 5 s, bounded, and
// only while it hears in time of what ends (credential-notices.ts). Without that each request's question begins after it.
import { Recent as Shared } from '../../models/db/recent.ts';

export const REMEMBERED_MS = 5_000;
const MOST_KNOWN = 10_000;
// Apart, so that a flood of secrets that do not exist pushes out none that does.
const MOST_UNKNOWN = 1_000;

interface Entry<T> {
  value: T;
  until: number;
}

/** The oldest entries go first. What is over stays until then: it has been known. */
class Recent<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, now: number): T | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && now < entry.until ? entry.value : undefined;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  set(key: string, value: T, until: number): void {
    // Set anew, so that the order of the map is the order of the answers.
    this.#entries.delete(key);
    this.#entries.set(key, { value, until });
    if (this.#entries.size > this.#limit) this.#entries.delete(this.#entries.keys().next().value as string);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}

export interface CredentialCacheOptions<T> {
  /** Asks the owner for what has this hash, for a client at the address, null for one that has been known; null for what is unknown or has ended. */
  find(hash: string, address: string | null): Promise<T | null>;
  /** Whether everything that ended was told to {@link CredentialCache.forget}. */
  hears(now: number): boolean;
  /** How long an answer holds by itself; without it for good. */
  lifeMs?(value: T): number;
  now?(): number;
}

export class CredentialCache<T> {
  readonly #options: CredentialCacheOptions<T>;
  readonly #now: () => number;
  readonly #known = new Recent<T>(MOST_KNOWN);
  readonly #unknown = new Recent<true>(MOST_UNKNOWN);
  /** Questions under way whose answers may be remembered. */
  readonly #asked = new Map<string, Promise<T | null>>();
  /** Without memory: whoever asks while a question is under way shares the next one, which halves what a request costs. */
  readonly #unheard = new Shared<T | null>(0);

  constructor(options: CredentialCacheOptions<T>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Whose secret has this hash, as a client at the address says. */
  async get(hash: string, address: string): Promise<T | null> {
    const now = this.#now();
    const find = () => this.#options.find(hash, this.#known.has(hash) ? null : address);
    if (!this.#options.hears(now)) return this.#unheard.now(find, hash);
    const known = this.#known.get(hash, now);
    if (known !== undefined) return known;
    if (this.#unknown.get(hash, now)) return null;
    let question = this.#asked.get(hash);
    if (question === undefined) {
      question = find();
      this.#asked.set(hash, question);
      void this.#remember(hash, question, now);
    }
    return question;
  }

  async #remember(hash: string, question: Promise<T | null>, asked: number): Promise<void> {
    const value = await question.catch(() => undefined);
    // Otherwise forgotten meanwhile: the answer may be older than the end.
    if (this.#asked.get(hash) !== question) return;
    this.#asked.delete(hash);
    if (value === null) {
      this.#known.delete(hash);
      this.#unknown.set(hash, true, asked + REMEMBERED_MS);
    } else if (value !== undefined) {
      const { lifeMs } = this.#options;
      this.#known.set(hash, value, asked + Math.min(REMEMBERED_MS, lifeMs ? lifeMs(value) : REMEMBERED_MS));
    }
  }

  forget(hash: string): void {
    this.#known.delete(hash);
    this.#unknown.delete(hash);
    this.#asked.delete(hash);
  }

  /** Forgets everything: what ended since it was asked cannot be said. */
  clear(): void {
    this.#known.clear();
    this.#unknown.clear();
    this.#asked.clear();
  }
}
