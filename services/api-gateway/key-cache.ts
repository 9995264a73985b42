// What the gateway remembers of keys, so that a read rarely asks the database: for up to 5 s, bounded, and forgotten at
// once in every process when a key is revoked or its account changes.
import type { Scope } from '../../contract/procedure.ts';

export const KEY_CACHE_MS = 5_000;
const MOST_KEYS = 10_000;
// Apart, so that a flood of keys that do not exist pushes out no key that does.
const MOST_UNKNOWN = 1_000;

export interface KnownAccessKey {
  kind: 'access_key';
  keyId: string;
  /** The key is who acts. */
  id: string;
  name: string;
  scope: 'read' | 'readwrite';
}

export interface KnownServiceAccountKey {
  kind: 'service_account';
  keyId: string;
  /** The account is who acts. */
  id: string;
  name: string;
  scopes: readonly Scope[];
}

export type KnownKey = KnownAccessKey | KnownServiceAccountKey;
export type KeyKind = KnownKey['kind'];

/** Asks the owner of the keys; null for an unknown or revoked key. */
export type FindKey = (hash: string, kind: KeyKind) => Promise<KnownKey | null>;

interface Entry<T> {
  value: T;
  until: number;
}

/** The least recently used entries go first. */
class Recent<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, now: number): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until <= now) {
      this.#entries.delete(key);
      return undefined;
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: string, value: T, until: number): void {
    this.#entries.set(key, { value, until });
    if (this.#entries.size > this.#limit) this.#entries.delete(this.#entries.keys().next().value as string);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

interface Question {
  answer: Promise<KnownKey | null>;
}

export class KeyCache {
  readonly #known = new Recent<KnownKey>(MOST_KEYS);
  readonly #unknown = new Recent<true>(MOST_UNKNOWN);
  /** Questions under way whose answers may be remembered. */
  readonly #asked = new Map<string, Question>();
  readonly #find: FindKey;
  readonly #now: () => number;

  constructor(find: FindKey, now: () => number = () => performance.now()) {
    this.#find = find;
    this.#now = now;
  }

  /** The key with this hash; one question to the owner at a time, however many ask. */
  async get(hash: string, kind: KeyKind): Promise<KnownKey | null> {
    const now = this.#now();
    const known = this.#known.get(hash, now);
    if (known) return known;
    if (this.#unknown.get(hash, now)) return null;
    let question = this.#asked.get(hash);
    if (!question) {
      question = { answer: this.#find(hash, kind) };
      this.#asked.set(hash, question);
      question.answer = this.#remember(hash, question, now);
    }
    return question.answer;
  }

  async #remember(hash: string, question: Question, asked: number): Promise<KnownKey | null> {
    try {
      const key = await question.answer;
      // Otherwise forgotten meanwhile: the answer may be older than the revocation.
      if (this.#asked.get(hash) === question) {
        const until = asked + KEY_CACHE_MS;
        if (key) this.#known.set(hash, key, until);
        else this.#unknown.set(hash, true, until);
      }
      return key;
    } finally {
      if (this.#asked.get(hash) === question) this.#asked.delete(hash);
    }
  }

  forget(hash: string): void {
    this.#known.delete(hash);
    this.#unknown.delete(hash);
    this.#asked.delete(hash);
  }
}
