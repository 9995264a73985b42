// A configuration that is being received page by page, beside the one in use.
import type { Entry, EntryKey } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import type { ConfigPosition } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { JournalDraft } from '../../kit/journal.ts';
import { type EntryHash, encodeEntry, entryKey, hashEntry, parseEntry } from './entry.ts';
import { encodeConfigRecord } from './record.ts';
import { SetSum } from './set-sum.ts';

/** What the table knows of an entry. */
export interface Row {
  /** Place of the encoded entry in the journal, -1 while it could not be written. */
  offset: number;
  length: number;
  hash: EntryHash;
  /** The encoded entry while it is not in the journal. */
  bytes: Uint8Array | undefined;
}

/** Appends entries as one record and returns where each begins. */
export function appendEntries(draft: JournalDraft, entries: readonly Uint8Array[]): number[] {
  const { payload, places } = encodeConfigRecord(undefined, entries, []);
  const offset = draft.append(payload);
  return places.map((place) => offset + place.start);
}

/** A table that is being received page by page. */
export class Snapshot {
  readonly draft: JournalDraft;
  readonly rows = new Map<string, Row>();
  readonly sum = new SetSum();
  /** Keys that come before the node serves their site. */
  readonly unserved: EntryKey[] = [];
  liveBytes = 0;
  private readonly unservedAmong: (entries: readonly Entry[]) => EntryKey[];

  constructor(draft: JournalDraft, unservedAmong: (entries: readonly Entry[]) => EntryKey[]) {
    this.draft = draft;
    this.unservedAmong = unservedAmong;
  }

  add(entries: readonly Entry[]): void {
    const encoded = entries.map(encodeEntry);
    const offsets = appendEntries(this.draft, encoded);
    this.unserved.push(...this.unservedAmong(entries));
    entries.forEach((entry, index) => {
      const key = entryKey(entry.kind, entry.id);
      const before = this.rows.get(key);
      if (before) {
        this.sum.subtract(before.hash);
        this.liveBytes -= before.length;
      }
      const hash = hashEntry(entry.kind, entry.id, entry.body, entry.features);
      this.rows.set(key, { offset: offsets[index]!, length: encoded[index]!.length, hash, bytes: undefined });
      this.sum.add(hash);
      this.liveBytes += encoded[index]!.length;
    });
  }

  /**
   * Writes former versions of a key and then its newest once more, so that the newest is the last in the file. Returns the
   * rows of the former ones. Each is a record of its own: many large ones would be more than a record may hold.
   */
  putBefore(key: string, former: Iterable<Uint8Array>): Row[] {
    const rows: Row[] = [];
    for (const content of former) {
      const [offset] = appendEntries(this.draft, [content]);
      const { hash } = parseEntry(Buffer.from(content), 0, content.length);
      rows.push({ offset: offset!, length: content.length, hash, bytes: undefined });
    }
    const newest = this.rows.get(key)!;
    const [offset] = appendEntries(this.draft, [this.draft.read(newest.offset, newest.length)]);
    newest.offset = offset!;
    return rows;
  }

  finish(position: ConfigPosition): void {
    this.draft.append(encodeConfigRecord(position, [], [], this.unserved).payload);
  }

  discard(): void {
    this.draft.discard();
  }
}
