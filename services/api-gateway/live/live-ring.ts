// The last entries of the live stream, shared by all watchers of the process: a watcher holds a cursor into it, never a
// queue of its own, so a reader that stalls costs nothing but its place. Pure.
import { compareIds, type LiveEntry } from '../../../runtime/live-stream.ts';

/** Like the stream itself. */
const MOST_ENTRIES = 3_000;

interface Kept extends LiveEntry {
  /** Date.now() of its arrival. */
  at: number;
}

export class LiveRing {
  readonly #entries: Kept[] = [];
  #floor: string;
  #head: string;

  /** Knows what comes after the first of `kept`; without any, only what comes after `head`. */
  constructor(head: string, kept: readonly LiveEntry[] = []) {
    this.#head = head;
    this.#floor = kept[0]?.id ?? head;
    // Redis numbers by its clock.
    this.#entries.push(...kept.map((entry) => ({ ...entry, at: Number.parseInt(entry.id, 10) })));
  }

  /** Id of the newest entry. */
  get head(): string {
    return this.#head;
  }

  /** A cursor with everything behind it that arrived since the time. */
  before(time: number): string {
    const index = this.#entries.findLastIndex(({ at }) => at < time);
    return this.#entries[index]?.id ?? this.#floor;
  }

  append(entries: readonly LiveEntry[]): void {
    const at = Date.now();
    const fresh = entries.flatMap((entry) => (compareIds(entry.id, this.#head) > 0 ? [{ ...entry, at }] : []));
    if (fresh.length === 0) return;
    this.#entries.push(...fresh);
    this.#head = fresh.at(-1)!.id;
    const surplus = this.#entries.length - MOST_ENTRIES;
    if (surplus > 0) this.#floor = this.#entries.splice(0, surplus).at(-1)!.id;
  }

  /** The hints after `cursor`, up to and with `until`; 'lost' when some of them are not known any more, or never were. */
  between(cursor: string, until: string): string[] | 'lost' {
    if (compareIds(cursor, this.#floor) < 0 || compareIds(cursor, this.#head) > 0) return 'lost';
    const from = this.#entries.findLastIndex(({ id }) => compareIds(id, cursor) <= 0) + 1;
    const entries = this.#entries.slice(from).filter(({ id }) => compareIds(id, until) <= 0);
    return entries.flatMap(({ hints }) => hints);
  }
}
