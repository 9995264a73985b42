// The configuration a node holds: a table from key to hash and place in the journal. Bodies stay in the file. Only the
// configuration feed changes it, one change at a time; a change is in the journal before it is in the table's position.
//
// Caddy goes on with the former version of an entry that does not compile. So the journal keeps, before the newest version of
// a key, every former one that may be what serves, until Caddy has said which it is; see former-versions.ts.
import { createHash } from 'node:crypto';
import { clone, create, fromBinary } from '@bufbuild/protobuf';
import { BUCKET_COUNT, bucketOf } from '../../../proto/entry-hash.ts';
import { type Entry, type EntryKey, EntryKeySchema, EntrySchema } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import { type ConfigPosition, ConfigPositionSchema } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { FOREIGN_JOURNAL, Journal } from '../../kit/journal.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { type EntryHash, encodeEntry, entryKey, hashEntry, type ParsedEntry, parseEntry, splitKey } from './entry.ts';
import { FormerVersions } from './former-versions.ts';
import { decodeHeader, encodeConfigRecord, encodeHeader, JOURNAL_FORMAT, readConfigRecord } from './record.ts';
import { SetSum } from './set-sum.ts';
import { appendEntries, type Row, Snapshot } from './snapshot.ts';
import { UnservedKeys } from './unserved-keys.ts';

const COMPACT_MIN_BYTES = 1024 * 1024;
const COPY_BYTES = 512 * 1024;
const VERIFY_SLICE = 200;
/** Of what waits for room, at most so much is one record. */
const FLUSH_BYTES = 16 * 1024 * 1024;
/** With more keys waiting, writing is tried by the maintenance, and not with each change. */
const FLUSH_AT_ONCE_KEYS = 1000;
/** Bytes around an entry in a record, roughly. */
const ENTRY_OVERHEAD_BYTES = 8;

export interface ConfigChange {
  position: ConfigPosition;
  upserts: readonly Entry[];
  deletes: readonly EntryKey[];
  /** Upserts that the node may have to hold and that came before it served their site. The store finds them out. */
  unserved?: readonly EntryKey[];
}

/** Told about every entry that becomes live or goes; bodies are only valid during the call. */
export interface EntryObserver {
  put(kind: string, id: string, body: Uint8Array): void;
  remove(kind: string, id: string): void;
  clear(): void;
}

/** Tells several. */
export function observers(...all: readonly EntryObserver[]): EntryObserver {
  return {
    put: (kind, id, body) => {
      for (const observer of all) observer.put(kind, id, body);
    },
    remove: (kind, id) => {
      for (const observer of all) observer.remove(kind, id);
    },
    clear: () => {
      for (const observer of all) observer.clear();
    },
  };
}

export interface ConfigStoreOptions {
  path: string;
  nodeId: string;
  clusterId: string;
  log: Log;
  observer: EntryObserver;
  /** Whether the node can do all of this now; anything, unless given. */
  able?: (features: readonly string[]) => boolean;
}

export function noPosition(): ConfigPosition {
  return create(ConfigPositionSchema);
}

export class ConfigStore {
  private readonly log: Log;
  private readonly observer: EntryObserver;
  private readonly able: (features: readonly string[]) => boolean;
  private readonly unserved = new UnservedKeys();
  private journal!: Journal;
  private rows = new Map<string, Row>();
  private readonly former = new FormerVersions();
  private sum = new SetSum();
  private liveBytes = 0;
  private storedPosition = noPosition();
  private drifted = false;
  /** Keys changed since `behind`, and whether the file holds a version of them: of each only the final state is written. */
  private readonly unwritten = new Map<string, boolean>();
  /** Where the file ends, while the disk refuses what came after. */
  private behind: ConfigPosition | undefined;
  private diskProblem = '';
  /** The file holds damage that only a rewrite removes. */
  private rewriteWanted = false;

  private constructor(options: ConfigStoreOptions) {
    this.log = options.log;
    this.observer = options.observer;
    this.able = options.able ?? (() => true);
  }

  /** Reads the journal into the table. */
  static open(options: ConfigStoreOptions): ConfigStore {
    const store = new ConfigStore(options);
    store.journal = Journal.open({
      path: options.path,
      log: options.log,
      header: encodeHeader(options.nodeId, options.clusterId),
      accept: (payload) => {
        const header = decodeHeader(payload);
        return header?.format === JOURNAL_FORMAT && header.clusterId === options.clusterId;
      },
      onRecord: (payload, offset) => store.load(payload, offset),
      keepsBefore: true,
    });
    if (!store.matches(store.storedPosition)) {
      store.log.error('configuration does not match its hash, agent requests a repair', {
        revision: store.storedPosition.revision,
        entries: store.size,
      });
      store.drifted = true;
    }
    for (const [key, row] of store.rows) store.observe(key, row);
    return store;
  }

  get position(): ConfigPosition {
    return this.storedPosition;
  }

  /** The entries read at the start did not add up to the hash of their position: it is no base for a delta. */
  get hasDrifted(): boolean {
    return this.drifted;
  }

  get size(): number {
    return this.rows.size;
  }

  /** Why the newest changes are not on disk, or what was wrong with the journal; "" when all is well. */
  get problem(): string {
    return this.diskProblem || this.journal.problem;
  }

  /** The file was another cluster's and set aside: what it said holds no more. */
  get isOfAnotherCluster(): boolean {
    return this.journal.damage === FOREIGN_JOURNAL;
  }

  /** Keys of which former versions are kept. */
  get unsettled(): number {
    return this.former.size;
  }

  /** Set hash the table would have after a change. */
  hashAfter(upserts: readonly Entry[], deletes: readonly EntryKey[]): Buffer {
    const sum = this.sum.copy();
    const seen = new Map<string, EntryHash | undefined>();
    const move = (key: string, next: EntryHash | undefined): void => {
      const before = seen.has(key) ? seen.get(key) : this.rows.get(key)?.hash;
      if (before) sum.subtract(before);
      if (next) sum.add(next);
      seen.set(key, next);
    };
    for (const entry of upserts) {
      move(entryKey(entry.kind, entry.id), hashEntry(entry.kind, entry.id, entry.body, entry.features));
    }
    for (const key of deletes) move(entryKey(key.kind, key.id), undefined);
    return sum.toBytes();
  }

  /**
   * Journals a change and takes it over; answers it with what it says of sites that were never served. A full disk does
   * not stop it: the change stays in memory and is retried.
   */
  apply(change: ConfigChange): ConfigChange {
    const unserved = this.unservedAmong(change.upserts);
    const encoded = change.upserts.map(encodeEntry);
    const rows = change.upserts.map((entry, index): Row => {
      const bytes = encoded[index]!;
      const hash = hashEntry(entry.kind, entry.id, entry.body, entry.features);
      return { offset: -1, length: bytes.length, hash, bytes };
    });
    if (this.behind || !this.append(change.position, rows, change.deletes, unserved)) this.keepUnwritten(change);
    for (const { kind, id } of change.upserts) this.unserved.delete(kind, id);
    for (const { kind, id } of unserved) this.unserved.add(kind, id);
    change.upserts.forEach((entry, index) => {
      this.supersede(entryKey(entry.kind, entry.id), rows[index]!);
      this.observer.put(entry.kind, entry.id, entry.body);
    });
    for (const { kind, id } of change.deletes) {
      const key = entryKey(kind, id);
      this.forget(key);
      // The file never had it.
      if (this.unwritten.get(key) === false) this.unwritten.delete(key);
      this.observer.remove(kind, id);
    }
    this.storedPosition = change.position;
    if (this.behind && this.unwritten.size <= FLUSH_AT_ONCE_KEYS) this.flush();
    return { ...change, unserved };
  }

  /**
   * Upserts the node is not able to follow, without a former version, of sites it did not serve until now. While it is
   * not known what the node can do it is able to do nothing: the mark says nothing of an entry that runs.
   */
  private unservedAmong(upserts: readonly Entry[]): EntryKey[] {
    return upserts.flatMap(({ kind, id, features }) => {
      if (features.length === 0 || this.able(features)) return [];
      const former = this.rows.has(entryKey(kind, id)) && !this.unserved.has(kind, id);
      return former || this.serves(id) ? [] : [create(EntryKeySchema, { kind, id })];
    });
  }

  private serves(siteId: string): boolean {
    if (!this.rows.has(entryKey('site', siteId))) return false;
    return this.unserved.kindsOf(siteId).every((kind) => {
      const row = this.rows.get(entryKey(kind, siteId));
      // A mark of what the node is able to follow by now says nothing.
      return row !== undefined && this.able(this.readRow(row).features);
    });
  }

  /** Bodies of the former versions of entries of a kind, as far as they are kept and can be read. */
  *formerBodies(kind: string): Generator<Buffer> {
    for (const [key, rows] of this.former.entries()) {
      if (splitKey(key).kind !== kind) continue;
      for (const row of rows) {
        try {
          yield this.readRow(row).body;
        } catch {
          // Nobody can serve it either.
        }
      }
    }
  }

  /** What the file lacks, as one change that follows `position`; undefined when the file is not there or lacks nothing. */
  changeSince(position: ConfigPosition): ConfigChange | undefined {
    if (!this.behind || !samePosition(position, this.behind)) return undefined;
    const upserts: Entry[] = [];
    for (const key of this.unwritten.keys()) {
      const row = this.rows.get(key);
      if (row) upserts.push(fromBinary(EntrySchema, this.bytesOf(row)));
    }
    return { position: this.storedPosition, upserts, deletes: this.unwrittenDeletes(), unserved: this.unserved.keys() };
  }

  /** Writes what the disk refused before. */
  flush(): void {
    if (!this.behind) return;
    let rows: Row[] = [];
    let keys: string[] = [];
    let bytes = 0;
    for (const key of this.unwritten.keys()) {
      keys.push(key);
      // Former versions, too: one of them may be what serves.
      for (const row of [...this.former.of(key), ...(this.rows.has(key) ? [this.rows.get(key)!] : [])]) {
        if (!row.bytes) continue;
        // More than a record can hold: what is written before the position counts only with it.
        if (bytes + row.length > FLUSH_BYTES && rows.length > 0) {
          if (!this.append(undefined, rows, [])) return;
          for (const written of keys) this.unwritten.set(written, true);
          rows = [];
          keys = [key];
          bytes = 0;
        }
        rows.push(row);
        bytes += row.length;
      }
    }
    if (!this.append(this.storedPosition, rows, this.unwrittenDeletes(), this.unserved.keys())) return;
    this.writtenWhole();
    this.log.info('configuration journal rewritten');
  }

  private unwrittenDeletes(): EntryKey[] {
    const gone = [...this.unwritten.keys()].filter((key) => !this.rows.has(key));
    return gone.map((key) => create(EntryKeySchema, splitKey(key)));
  }

  /** Notes what a change does that the file does not get now. */
  private keepUnwritten({ upserts, deletes }: ConfigChange): void {
    this.behind ??= this.storedPosition;
    for (const { kind, id } of [...upserts, ...deletes]) {
      const key = entryKey(kind, id);
      if (!this.unwritten.has(key)) this.unwritten.set(key, this.rows.has(key));
    }
  }

  private writtenWhole(): void {
    this.unwritten.clear();
    this.behind = undefined;
    this.diskProblem = '';
  }

  /** Writes one record and notes where its rows are; false when the disk refuses. */
  private append(
    position: ConfigPosition | undefined,
    rows: readonly Row[],
    deletes: readonly EntryKey[],
    unserved: readonly EntryKey[] = [],
  ): boolean {
    const contents = rows.map((row) => row.bytes!);
    const { payload, places } = encodeConfigRecord(position, contents, deletes, unserved);
    try {
      const offset = this.journal.append(payload);
      for (const [index, row] of rows.entries()) {
        row.offset = offset + places[index]!.start;
        row.bytes = undefined;
      }
      return true;
    } catch (error) {
      if (this.diskProblem === '')
        this.log.error('configuration journal cannot grow, serving configuration from memory', { error });
      this.diskProblem = `configuration not on disk: ${errorText(error)}`;
      return false;
    }
  }

  /** Sums of the 4,096 buckets, 32 bytes each, concatenated. */
  bucketSums(): Buffer {
    const sums = new Map<number, SetSum>();
    for (const [key, row] of this.rows) {
      const { kind, id } = splitKey(key);
      const bucket = bucketOf(kind, id);
      const sum = sums.get(bucket) ?? new SetSum();
      sums.set(bucket, sum.add(row.hash));
    }
    const bytes = Buffer.alloc(BUCKET_COUNT * 32);
    for (const [bucket, sum] of sums) sum.toBytes().copy(bytes, bucket * 32);
    return bytes;
  }

  /** Stored keys in these buckets that are not among `kept`. */
  keysToDelete(buckets: ReadonlySet<number>, kept: ReadonlySet<string>): EntryKey[] {
    const keys: EntryKey[] = [];
    for (const key of this.rows.keys()) {
      if (kept.has(key)) continue;
      const { kind, id } = splitKey(key);
      if (buckets.has(bucketOf(kind, id))) keys.push(create(EntryKeySchema, { kind, id }));
    }
    return keys;
  }

  /** Starts a shadow table that can take this one's place. */
  startSnapshot(): Snapshot {
    return new Snapshot(this.journal.startShadow(), (entries) => this.unservedAmong(entries));
  }

  /** Puts a complete snapshot in place of everything. Returns false, changing nothing, when it does not add up. */
  async replace(snapshot: Snapshot, position: ConfigPosition): Promise<boolean> {
    if (!snapshot.sum.toBytes().equals(position.setHash)) {
      snapshot.discard();
      return false;
    }
    let former: Map<string, Row[]>;
    try {
      former = await this.keepFormer(snapshot);
      snapshot.finish(position);
    } catch (error) {
      snapshot.discard();
      throw error;
    }
    await this.journal.replace(snapshot.draft, () => {
      this.rows = snapshot.rows;
      this.sum = snapshot.sum;
      this.liveBytes = snapshot.liveBytes;
      this.storedPosition = position;
      this.former.replace(former);
      this.unserved.replace(snapshot.unserved);
      this.writtenWhole();
      this.observer.clear();
      for (const [key, row] of this.rows) this.observe(key, row);
    });
    return true;
  }

  /**
   * Rehashes what the disk holds and compares it with the position; yields to the event loop now and then. Entries that
   * the disk lost are forgotten, so that a repair by bucket sums brings them, and the file is rewritten soon.
   */
  async verify(): Promise<boolean> {
    const sum = new SetSum();
    const position = this.storedPosition;
    const lost: string[] = [];
    let count = 0;
    for (const [key, row] of [...this.rows]) {
      if (this.isOnDisk(key, row)) sum.add(row.hash);
      else lost.push(key);
      if (++count % VERIFY_SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
      // Offsets may have moved or the table changed meanwhile: this round proves nothing, the next one will.
      if (this.storedPosition !== position || this.journal.busy) return true;
    }
    if (lost.length > 0) {
      this.log.error('configuration entries changed on disk', {
        entries: lost.length,
        first: lost[0]!.replace('\0', '/'),
      });
      for (const key of lost) this.forget(key);
      this.rewriteWanted = true;
      return false;
    }
    return position.revision === 0n || sum.toBytes().equals(position.setHash);
  }

  private isOnDisk(key: string, row: Row): boolean {
    try {
      const bytes = Buffer.from(row.bytes ?? this.journal.read(row.offset, row.length));
      const entry = parseEntry(bytes, 0, bytes.length);
      return entryKey(entry.kind, entry.id) === key && entry.hash === row.hash;
    } catch (error) {
      this.log.warn('configuration entry not readable from disk', { key: key.replace('\0', '/'), error });
      return false;
    }
  }

  /** Rewrites the journal when more of it is dead than alive. */
  async compactIfWorthwhile(): Promise<void> {
    const live = this.liveBytes + this.former.bytes + this.rows.size * ENTRY_OVERHEAD_BYTES;
    if (this.journal.busy || this.behind) return;
    if (!this.rewriteWanted && this.journal.bytes - live <= Math.max(live, COMPACT_MIN_BYTES)) return;
    this.rewriteWanted = false;
    await this.compact();
  }

  /**
   * Writes the file anew because Caddy cannot read it. Returns false when entries were lost with the file: the console has to
   * bring them first. Rejects when the disk refuses.
   */
  async rewrite(): Promise<boolean> {
    this.flush();
    if (this.behind) throw new Error(this.diskProblem);
    if (!(await this.verify())) return false;
    await this.compact(true);
    return true;
  }

  /**
   * Forgets former versions that cannot serve any more: Caddy is at `position`, `running` has every key whose newest version
   * does not compile, with the hash of the body that serves instead. Does nothing when the table is elsewhere by now.
   */
  async settle(position: ConfigPosition, running: ReadonlyMap<string, Uint8Array>): Promise<void> {
    const at = this.storedPosition;
    if (
      this.journal.busy ||
      at.revision !== position.revision ||
      at.epoch !== position.epoch ||
      at.track !== position.track
    )
      return;
    let count = 0;
    for (const [key, rows] of [...this.former.entries()]) {
      const body = running.get(key);
      if (!body || body.length === 0) this.former.drop(key);
      else
        this.former.keepOnly(
          key,
          rows.filter((row) => this.hasBody(row, body)),
        );
      if (++count % VERIFY_SLICE !== 0) continue;
      await new Promise((resolve) => setImmediate(resolve));
      // A newer change was not asked about.
      if (this.storedPosition !== at || this.journal.busy) return;
    }
  }

  private hasBody(row: Row, bodyHash: Uint8Array): boolean {
    try {
      const { body } = this.readRow(row);
      return createHash('sha256').update(body).digest().equals(bodyHash);
    } catch {
      return false;
    }
  }

  private readRow(row: Row): ParsedEntry {
    const bytes = Buffer.from(row.bytes ?? this.journal.read(row.offset, row.length));
    return parseEntry(bytes, 0, bytes.length);
  }

  /** Former versions of what a snapshot changes, written into it before the newest once more; by key. */
  private async keepFormer(snapshot: Snapshot): Promise<Map<string, Row[]>> {
    const former = new Map<string, Row[]>();
    let count = 0;
    for (const [key, next] of snapshot.rows) {
      if (++count % VERIFY_SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
      const stored = this.rows.get(key);
      if (!stored) continue;
      const rows = this.former.of(key);
      const candidates = stored.hash === next.hash ? rows : [...rows, stored];
      if (candidates.length === 0) continue;
      const kept = candidates.filter((row) => this.isOnDisk(key, row));
      if (kept.length > 0)
        former.set(
          key,
          snapshot.putBefore(
            key,
            kept.values().map((row) => this.bytesOf(row)),
          ),
        );
    }
    return former;
  }

  private bytesOf(row: Row): Uint8Array {
    return row.bytes ?? this.journal.read(row.offset, row.length);
  }

  /** Rewrites the journal with what is live; a file that is `spoilt` is not kept as the one before. */
  async compact(spoilt = false): Promise<void> {
    const before = this.journal.bytes;
    const copied: { row: Row; offset: number }[] = [];
    const position = clone(ConfigPositionSchema, this.storedPosition);
    const adds = position.revision > 0n && this.matches(position);
    const unserved = this.unserved.keys();
    await this.journal.rewrite(
      async (draft) => {
        // In the order in which they came, which is how Caddy took them.
        const rows = [...this.former.rows(), ...this.rows.values()].sort((left, right) => place(left) - place(right));
        for (let from = 0; from < rows.length; ) {
          const group: Row[] = [];
          for (let bytes = 0; from < rows.length && (group.length === 0 || bytes < COPY_BYTES); from++) {
            group.push(rows[from]!);
            bytes += rows[from]!.length;
          }
          const contents = group.map((row) => this.bytesOf(row));
          for (const [index, offset] of appendEntries(draft, contents).entries())
            copied.push({ row: group[index]!, offset });
          await new Promise((resolve) => setImmediate(resolve));
        }
        // Without a position a file does not say that it is complete.
        if (adds) draft.append(encodeConfigRecord(position, [], [], unserved).payload);
      },
      (tailFrom, shift) => {
        for (const row of [...this.former.rows(), ...this.rows.values()])
          if (row.offset >= tailFrom) row.offset += shift;
        for (const { row, offset } of copied) row.offset = offset;
      },
      spoilt,
    );
    this.log.info('configuration journal compacted', {
      bytesBefore: before,
      bytes: this.journal.bytes,
      entries: this.size,
    });
  }

  close(): Promise<void> {
    return this.journal.close();
  }

  private load(payload: Buffer, offset: number): boolean {
    try {
      readConfigRecord(payload, {
        upsert: (start, end) => {
          const entry = parseEntry(payload, start, end);
          this.unserved.delete(entry.kind, entry.id);
          this.supersede(entryKey(entry.kind, entry.id), {
            offset: offset + start,
            length: end - start,
            hash: entry.hash,
            bytes: undefined,
          });
        },
        remove: (key) => this.forget(entryKey(key.kind, key.id)),
        unserved: (key) => this.unserved.add(key.kind, key.id),
        position: (position) => {
          this.storedPosition = position;
        },
      });
      return true;
    } catch (error) {
      this.log.error('unreadable record in configuration journal', { error, offset });
      return false;
    }
  }

  private observe(key: string, row: Row): void {
    const { kind, id } = splitKey(key);
    if (!OBSERVED_KINDS.has(kind)) return;
    this.observer.put(kind, id, this.readRow(row).body);
  }

  private matches(position: ConfigPosition): boolean {
    return position.revision === 0n ? this.rows.size === 0 : this.sum.toBytes().equals(position.setHash);
  }

  /** A newer version: the one before may be what serves. */
  private supersede(key: string, row: Row): void {
    const before = this.rows.get(key);
    if (before && before.hash !== row.hash) this.former.add(key, before);
    this.setRow(key, row);
  }

  private forget(key: string): void {
    this.former.drop(key);
    const { kind, id } = splitKey(key);
    this.unserved.delete(kind, id);
    this.dropRow(key);
  }

  private setRow(key: string, row: Row): void {
    this.dropRow(key);
    this.rows.set(key, row);
    this.sum.add(row.hash);
    this.liveBytes += row.length;
  }

  private dropRow(key: string): void {
    const row = this.rows.get(key);
    if (!row) return;
    this.rows.delete(key);
    this.sum.subtract(row.hash);
    this.liveBytes -= row.length;
  }
}

/** Whether two positions are one state of the configuration. */
export function samePosition(left: ConfigPosition, right: ConfigPosition): boolean {
  return (
    left.epoch === right.epoch &&
    left.revision === right.revision &&
    (left.revision === 0n || (left.track === right.track && Buffer.compare(left.setHash, right.setHash) === 0))
  );
}

/** Order in the file; what is not in it yet comes last. */
function place(row: Row): number {
  return row.offset < 0 ? Number.MAX_SAFE_INTEGER : row.offset;
}

/** Kinds the agent itself understands; see nft/allow-list.ts and certificates/certificate-uses.ts. */
const OBSERVED_KINDS: ReadonlySet<string> = new Set([
  'client-ip',
  'ip-list',
  'ip-list-chunk',
  'origin-policy',
  'site-https',
]);
