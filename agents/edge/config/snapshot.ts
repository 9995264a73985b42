// A configuration that is being received page by page, beside the one in use.
import type { Entry } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import type { ConfigPosition } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { JournalDraft } from '../../kit/journal.ts';
import { type EntryHash, encodeEntry, entryKey, hashEntry } from './entry.ts';
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
  liveBytes = 0;

  constructor(draft: JournalDraft) {
    this.draft = draft;
  }

  add(entries: readonly Entry[]): void {
    const encoded = entries.map(encodeEntry);
    const offsets = appendEntries(this.draft, encoded);
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

  finish(position: ConfigPosition): void {
    this.draft.append(encodeConfigRecord(position, [], []).payload);
  }

  discard(): void {
    this.draft.discard();
  }
}
