// What a simulated node holds. The light store knows its positions only; the full one keeps every entry and ban and
// recomputes the set hash, for tests that must see what a node really ended up with.
import { bodyHash, entryHash, fromSum, moveSum } from '../../proto/entry-hash.ts';
import type { Entry, EntryKey } from '../../proto/gen/svc/config/v1/entry_pb.js';
import type { Ban } from '../../proto/gen/svc/node/v1/bans_pb.js';

export interface NodeStore {
  replaceEntries(entries: readonly Entry[]): void;
  /** Everything in the buckets that is not in `entries` goes. */
  replaceBuckets(inBuckets: (key: { kind: string; id: string }) => boolean, entries: readonly Entry[]): void;
  changeEntries(upserts: readonly Entry[], deletes: readonly EntryKey[]): void;
  replaceBans(bans: readonly Ban[]): void;
  changeBans(upserts: readonly Ban[], removed: readonly string[]): void;
  /** Hash of what it holds; null when it does not know. */
  setHash(): Uint8Array | null;
  banCount(): number;
}

export class LightStore implements NodeStore {
  #bans = 0;

  replaceEntries(): void {
    // Positions only.
  }
  replaceBuckets(): void {
    // Positions only.
  }
  changeEntries(): void {
    // Positions only.
  }
  replaceBans(bans: readonly Ban[]): void {
    this.#bans = bans.length;
  }
  changeBans(upserts: readonly Ban[], removed: readonly string[]): void {
    // A renewal counts twice here; nothing depends on it.
    this.#bans = Math.max(0, this.#bans + upserts.length - removed.length);
  }
  setHash(): null {
    return null;
  }
  banCount(): number {
    return this.#bans;
  }
}

export class FullStore implements NodeStore {
  readonly entries = new Map<string, { kind: string; id: string; body: Uint8Array; hash: Buffer }>();
  readonly bans = new Map<string, Ban>();
  #sum = 0n;

  replaceEntries(entries: readonly Entry[]): void {
    this.entries.clear();
    this.#sum = 0n;
    this.changeEntries(entries, []);
  }

  replaceBuckets(inBuckets: (key: { kind: string; id: string }) => boolean, entries: readonly Entry[]): void {
    const gone = [...this.entries.values()].filter(inBuckets);
    this.changeEntries([], gone as unknown as EntryKey[]);
    this.changeEntries(entries, []);
  }

  changeEntries(upserts: readonly Entry[], deletes: readonly EntryKey[]): void {
    for (const { kind, id } of deletes) {
      const held = this.entries.get(`${kind}\0${id}`);
      if (!held) continue;
      this.#sum = moveSum(this.#sum, [held.hash], []);
      this.entries.delete(`${kind}\0${id}`);
    }
    for (const { kind, id, body, features } of upserts) {
      const key = `${kind}\0${id}`;
      const before = this.entries.get(key);
      const hash = entryHash(kind, id, bodyHash(body), features);
      this.#sum = moveSum(this.#sum, before ? [before.hash] : [], [hash]);
      this.entries.set(key, { kind, id, body, hash });
    }
  }

  replaceBans(bans: readonly Ban[]): void {
    this.bans.clear();
    this.changeBans(bans, []);
  }

  changeBans(upserts: readonly Ban[], removed: readonly string[]): void {
    for (const id of removed) this.bans.delete(id);
    for (const ban of upserts) this.bans.set(ban.id, ban);
  }

  setHash(): Uint8Array {
    return fromSum(this.#sum);
  }

  banCount(): number {
    return this.bans.size;
  }
}
