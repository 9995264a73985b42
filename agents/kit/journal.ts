// Append-only journal: [u32 length][u32 CRC-32C][payload], both little-endian. A change is one record, so after a crash it
// is there whole or not at all. A torn tail is cut; a damaged middle means that the file cannot be trusted: it is set
// aside and the records before the damage start a new file. A file is only ever appended to or replaced by rename. On a full
// disk a journal opens all the same: the damaged file stays and is read as far as it goes, a missing one stays missing, and
// the first append for which there is room mends that.
//
// A file that could not be synced is never synced again: the kernel may have dropped what it could not write, and then calls the
// rest clean. It is replaced by a new file, made of what was on disk before and of what this process still has in memory.
import { closeSync, existsSync, fstatSync, openSync, readSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32c } from './crc32c.ts';
import { disk } from './disk.ts';
import { isErrno, removeFile, syncFolder, writeAll } from './files.ts';
import { beforePath, keepBefore } from './journal-before.ts';
import { errorText, type Log } from './log.ts';

const HEADER_BYTES = 8;
export const MAX_RECORD_BYTES = 64 * 1024 * 1024;
const READ_CHUNK_BYTES = 1024 * 1024;
const SYNC_GROUP_MS = 50;
/** After a sync that failed. */
const SYNC_RETRY_MS = 1000;
/** CRC work spent on looking for records behind damage; enough for every tail a crash can leave. */
const RESYNC_BUDGET_BYTES = 64 * 1024 * 1024;

/**
 * Called for each valid record in order with its payload and the payload's offset in the file. Returns false when the
 * payload makes no sense in spite of its checksum; the file then counts as damaged from there on.
 */
export type RecordHandler = (payload: Buffer, offset: number) => boolean;

/** What is wrong with a file that is not ours to read. */
export const FOREIGN_JOURNAL = 'the journal belongs to another cluster or format';

export type JournalEnd = 'clean' | 'torn' | 'damaged';

/** The record as it stands in the file. */
export function frameRecord(payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt32LE(payload.length, 0);
  frame.writeUInt32LE(crc32c(payload), 4);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/**
 * Reads records, from offset `from` on, until the end or the first invalid one. Returns up to where the bytes are valid, how the
 * file ends, and where the next record begins behind damage.
 */
export function scanJournal(
  fd: number,
  onRecord: RecordHandler,
  from = 0,
): { validBytes: number; end: JournalEnd; next?: number } {
  const size = fstatSync(fd).size;
  let window = Buffer.alloc(0);
  let windowAt = 0;
  /** Bytes [from, from + length) of the file, or undefined when it is shorter. */
  const view = (from: number, length: number): Buffer | undefined => {
    if (from + length > size) return undefined;
    if (from < windowAt || from + length > windowAt + window.length) {
      window = Buffer.allocUnsafe(Math.min(size - from, Math.max(length, READ_CHUNK_BYTES)));
      windowAt = from;
      let filled = 0;
      while (filled < window.length) {
        const read = readSync(fd, window, filled, window.length - filled, from + filled);
        if (read === 0) return undefined;
        filled += read;
      }
    }
    return window.subarray(from - windowAt, from - windowAt + length);
  };
  const recordAt = (at: number): { payload: Buffer; next: number } | undefined => {
    const header = view(at, HEADER_BYTES);
    if (!header) return undefined;
    const length = header.readUInt32LE(0);
    const crc = header.readUInt32LE(4);
    if (length === 0 || length > MAX_RECORD_BYTES) return undefined;
    const payload = view(at + HEADER_BYTES, length);
    if (!payload || crc32c(payload) !== crc) return undefined;
    return { payload, next: at + HEADER_BYTES + length };
  };
  let at = from;
  for (;;) {
    const record = recordAt(at);
    if (!record) break;
    if (!onRecord(record.payload, at + HEADER_BYTES)) return { validBytes: at, end: 'damaged' };
    at = record.next;
  }
  if (at === size) return { validBytes: at, end: 'clean' };
  let budget = RESYNC_BUDGET_BYTES;
  for (let probe = at + 1; probe + HEADER_BYTES < size && budget > 0; probe++) {
    const header = view(probe, HEADER_BYTES)!;
    const length = header.readUInt32LE(0);
    if (length === 0 || length > size - probe - HEADER_BYTES) continue;
    budget -= length + 1;
    if (recordAt(probe)) return { validBytes: at, end: 'damaged', next: probe };
  }
  return { validBytes: at, end: 'torn' };
}

/** A file that is being filled before it replaces a journal. */
export class JournalDraft {
  readonly path: string;
  private readonly fd: number;
  private size = 0;

  constructor(path: string) {
    this.path = path;
    removeFile(path);
    this.fd = disk.open(path, 'wx+', 0o600);
  }

  get bytes(): number {
    return this.size;
  }

  /** Appends a record and returns the offset of its payload. */
  append(payload: Uint8Array): number {
    const offset = this.size + HEADER_BYTES;
    this.write(frameRecord(payload));
    return offset;
  }

  /** Appends bytes that already are framed records. */
  write(bytes: Uint8Array): void {
    writeAll(this.fd, bytes);
    this.size += bytes.length;
  }

  /** Reads `length` bytes at `offset`. */
  read(offset: number, length: number): Buffer {
    return readAt(this.fd, this.path, offset, length);
  }

  sync(): Promise<void> {
    return disk.syncSoon(this.fd);
  }

  syncNow(): void {
    disk.sync(this.fd);
  }

  /**
   * Puts the file in place of `target`; the descriptor stays open and is now the journal's. Throws when it is not put there.
   * `problem`: the file is there, but may not be after a crash of the machine.
   */
  install(target: string): { fd: number; size: number; problem: unknown } {
    disk.rename(this.path, target);
    let problem: unknown;
    try {
      syncFolder(dirname(target));
    } catch (error) {
      problem = error;
    }
    return { fd: this.fd, size: this.size, problem };
  }

  discard(): void {
    closeSync(this.fd);
    removeFile(this.path);
  }
}

export interface JournalOptions {
  path: string;
  log: Log;
  /** First record of a new file. */
  header: Uint8Array;
  /** Called with the first record; false when the file is not ours to read. */
  accept: (header: Buffer) => boolean;
  onRecord: RecordHandler;
  /** Keep the file before the last rewrite under another name; see journal-before.ts. */
  keepsBefore?: boolean;
}

export class Journal {
  readonly path: string;
  /** What had to be repaired when the file was opened; "" when nothing. */
  readonly damage: string;
  private readonly log: Log;
  private readonly header: Uint8Array;
  private readonly keepsBefore: boolean;
  /** -1 while there is no file, for want of room. */
  private fd: number;
  private size: number;
  /** The file goes on behind `size` with what makes no sense, and was not set aside yet. */
  private damaged = false;
  /** What a crash of the machine leaves ends here, or before. */
  private synced: number;
  /** Frames behind `synced`, as they were appended by this process. */
  private unsynced: Buffer[] = [];
  /** No sync of this file says anything any more: a new one has to take its place. */
  private suspect = false;
  /** A process before this one may have ended with what it wrote. */
  private inherited: boolean;
  private syncProblem = '';
  private syncTimer: NodeJS.Timeout | undefined;
  private syncing: Promise<void> | undefined;
  private rewriting: Promise<void> | undefined;
  private closed = false;

  private constructor(options: JournalOptions, fd: number, size: number, damage: string) {
    this.path = options.path;
    this.log = options.log;
    this.header = options.header;
    this.keepsBefore = options.keepsBefore ?? false;
    this.fd = fd;
    this.size = size;
    this.synced = size;
    this.inherited = size > 0;
    this.damage = damage;
  }

  /** Opens or creates the journal and hands every valid record to `onRecord`. Throws when the disk fails, not when it is full. */
  static open(options: JournalOptions): Journal {
    const { path, log } = options;
    removeFile(`${path}.next`);
    removeFile(`${path}.shadow`);
    removeFile(`${path}.new`);
    let fd: number;
    try {
      fd = openSync(path, 'r+');
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
      return Journal.create(options, '');
    }
    let first = true;
    let ours = true;
    const { validBytes, end } = scanJournal(fd, (payload, offset) => {
      if (first) {
        first = false;
        ours = options.accept(payload);
        return ours;
      }
      return options.onRecord(payload, offset);
    });
    const size = fstatSync(fd).size;
    if (first || !ours) {
      closeSync(fd);
      if (first && size === 0) return Journal.create(options, '');
      const aside = setAside(path, first ? 'corrupt' : 'foreign');
      if (!first) removeFile(beforePath(path));
      const damage = first ? 'the journal could not be read' : FOREIGN_JOURNAL;
      log.error('journal set aside', { path, aside, reason: damage });
      return Journal.create(options, damage);
    }
    if (end === 'damaged') {
      const journal = new Journal(options, fd, validBytes, 'the journal was damaged');
      journal.damaged = true;
      log.error('journal damaged, records before the damage kept', { path, keptBytes: validBytes, bytes: size });
      journal.mendIfRoom();
      return journal;
    }
    if (end === 'torn') {
      log.warn('journal ended in a partial record, removed', { path, cutBytes: size - validBytes });
      disk.truncate(fd, validBytes);
    }
    return new Journal(options, fd, validBytes, '');
  }

  private static create(options: JournalOptions, damage: string): Journal {
    const journal = new Journal(options, -1, 0, damage);
    journal.mendIfRoom();
    return journal;
  }

  private mendIfRoom(): void {
    try {
      this.mend();
    } catch (error) {
      if (!isDiskFull(error)) {
        this.abandon();
        throw error;
      }
      this.log.error('no space left for the journal, continuing without it', { path: this.path, error });
    }
  }

  /** Never touches the file again. */
  private abandon(): void {
    this.closed = true;
    clearTimeout(this.syncTimer);
    if (this.fd >= 0) closeSync(this.fd);
  }

  /** Makes a file that can be appended to; does nothing when there is one. Throws when the disk refuses. */
  private mend(): void {
    if (this.fd >= 0 && !this.damaged && !this.suspect) return;
    // Room is asked for first, so that a full disk is not filled up at each try.
    const { bavail, bsize } = statfsSync(dirname(this.path));
    if (bavail * bsize <= this.size + this.header.length) throw diskFull(this.path);
    const draft = new JournalDraft(`${this.path}.new`);
    try {
      if (this.fd < 0) draft.append(this.header);
      for (let at = 0; at < this.size; at += READ_CHUNK_BYTES)
        draft.write(this.read(at, Math.min(READ_CHUNK_BYTES, this.size - at)));
      draft.syncNow();
      this.keepDamaged();
      this.take(draft);
    } catch (error) {
      draft.discard();
      throw error;
    }
    if (this.suspect) throw new Error(`${this.path}: ${this.syncProblem}`);
  }

  /** Puts a draft, all of which is on disk, in place of the file. Throws when it is not put there. */
  private take(draft: JournalDraft): void {
    const old = this.fd;
    const { fd, size, problem } = draft.install(this.path);
    this.fd = fd;
    this.size = size;
    this.synced = size;
    this.unsynced = [];
    this.damaged = false;
    this.inherited = false;
    this.suspect = false;
    this.syncProblem = '';
    if (problem !== undefined) this.distrust(problem);
    if (old < 0) return;
    const close = (): void => closeSync(old);
    if (this.syncing) void this.syncing.then(close, close);
    else close();
  }

  /** The file may lack what was appended to it, or its name, after a crash of the machine. */
  private distrust(error: unknown): void {
    this.suspect = true;
    this.syncProblem = `not on disk: ${errorText(error)}`;
    this.syncAfter(SYNC_RETRY_MS);
    if (this.synced === this.size) return;
    try {
      // Memory has it. A process that reads the file would take it for written.
      disk.truncate(this.fd, this.synced);
    } catch (truncation) {
      this.log.warn('the end of the journal is not cut, a new file takes its place', {
        path: this.path,
        error: truncation,
      });
    }
  }

  /** Gives a damaged file, which is about to be replaced, a second name. */
  private keepDamaged(): void {
    if (!this.damaged) return;
    // Two within a millisecond keep both.
    const name = `${this.path}.corrupt-${timeName()}`;
    let aside = name;
    for (let more = 1; existsSync(aside); more++) aside = `${name}-${more}`;
    disk.link(this.path, aside);
    this.log.info('damaged journal set aside', { path: this.path, aside });
  }

  get bytes(): number {
    return this.size;
  }

  /** What had to be repaired, or why not all of it is on disk; "" when all is well. */
  get problem(): string {
    return this.syncProblem || this.damage;
  }

  /** Whether the file is being rewritten at the moment. */
  get busy(): boolean {
    return this.rewriting !== undefined;
  }

  /**
   * Appends a record and returns its payload's offset; it reaches the disk within 50 ms. Throws when the disk refuses; the
   * file then ends where it did before.
   */
  append(payload: Uint8Array): number {
    const frame = frameRecord(payload);
    this.mend();
    try {
      writeAll(this.fd, frame, this.size);
    } catch (error) {
      this.cutBack();
      throw error;
    }
    const offset = this.size + HEADER_BYTES;
    this.size += frame.length;
    this.unsynced.push(frame);
    this.syncAfter(SYNC_GROUP_MS);
    return offset;
  }

  /** Removes what a failed write left behind the last record. */
  private cutBack(): void {
    try {
      disk.truncate(this.fd, this.size);
    } catch (error) {
      this.distrust(error);
    }
  }

  private syncAfter(delayMs: number): void {
    if (this.closed) return;
    this.syncTimer ??= setTimeout(() => {
      this.syncTimer = undefined;
      this.sync().catch((error) => this.log.error('journal not synced to disk', { path: this.path, error }));
    }, delayMs);
  }

  private get isSynced(): boolean {
    return this.synced === this.size && !this.suspect && !this.inherited;
  }

  /** Resolves when everything appended so far is on disk. Rejects when it is not; a later call tries again. */
  async sync(): Promise<void> {
    while (this.syncing || !this.isSynced) {
      if (this.syncing) await this.syncing;
      else if (this.suspect) this.mend();
      else {
        this.syncing = this.syncFile().finally(() => {
          this.syncing = undefined;
        });
      }
    }
  }

  private async syncFile(): Promise<void> {
    const { fd, size } = this;
    const frames = this.unsynced.length;
    try {
      await disk.syncSoon(fd);
    } catch (error) {
      // Another file has taken the place of this one meanwhile.
      if (fd !== this.fd) return;
      this.distrust(error);
      throw error;
    }
    if (fd !== this.fd) return;
    this.synced = size;
    this.unsynced.splice(0, frames);
    this.inherited = false;
  }

  /** Reads `length` bytes at `offset`. */
  read(offset: number, length: number): Buffer {
    if (!this.suspect || offset + length <= this.synced) return readAt(this.fd, this.path, offset, length);
    // The kernel may have dropped what it could not write.
    const tail = Buffer.concat(this.unsynced);
    if (offset >= this.synced) return tail.subarray(offset - this.synced, offset - this.synced + length);
    const before = readAt(this.fd, this.path, offset, this.synced - offset);
    return Buffer.concat([before, tail.subarray(0, length - before.length)]);
  }

  /**
   * Writes the live state anew: `produce` appends it to a draft (and may yield to the event loop); records appended
   * meanwhile are carried over, then the draft replaces the file. `moved` learns by how much offsets from `tailFrom` on
   * shifted, in the same turn in which the file changes. A file that is `spoilt` is not kept.
   */
  rewrite(
    produce: (draft: JournalDraft) => Promise<void>,
    moved: (tailFrom: number, shift: number) => void,
    spoilt = false,
  ): Promise<void> {
    if (this.rewriting) return this.rewriting;
    const run = async (): Promise<void> => {
      // A file that comes to be meanwhile begins with the header, which the draft has, too.
      const tailFrom = this.fd < 0 ? HEADER_BYTES + this.header.length : this.size;
      const draft = new JournalDraft(`${this.path}.next`);
      try {
        draft.append(this.header);
        await produce(draft);
        await draft.sync();
        if (this.closed) throw new Error('the journal was closed');
        const tailTo = draft.bytes;
        if (this.size > tailFrom) {
          draft.write(this.read(tailFrom, this.size - tailFrom));
          // It may be on disk already, and acknowledged.
          draft.syncNow();
        }
        this.swapIn(draft, spoilt);
        moved(tailFrom, tailTo - tailFrom);
      } catch (error) {
        draft.discard();
        throw error;
      }
      await this.sync();
    };
    this.rewriting = run().finally(() => {
      this.rewriting = undefined;
    });
    return this.rewriting;
  }

  /** A draft that starts with this journal's header, to be given to `replace`. */
  startShadow(): JournalDraft {
    const draft = new JournalDraft(`${this.path}.shadow`);
    draft.append(this.header);
    return draft;
  }

  /**
   * Replaces the whole journal by a complete draft; `swapped` runs in the same turn in which the file changes. A file that is
   * `spoilt` is not kept.
   */
  async replace(draft: JournalDraft, swapped: () => void, spoilt = false): Promise<void> {
    await draft.sync();
    await this.rewriting?.catch(() => undefined);
    this.swapIn(draft, spoilt);
    swapped();
  }

  private swapIn(draft: JournalDraft, spoilt: boolean): void {
    if (this.keepsBefore && !spoilt && !this.damaged && !this.suspect && this.fd >= 0) this.keep();
    this.keepDamaged();
    this.take(draft);
  }

  private keep(): void {
    try {
      keepBefore(this.path);
    } catch (error) {
      this.log.warn('previous journal not kept', { path: this.path, error });
    }
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.syncTimer);
    this.syncTimer = undefined;
    await this.rewriting?.catch(() => undefined);
    await this.sync().finally(() => {
      if (this.fd >= 0) closeSync(this.fd);
    });
  }
}

function isDiskFull(error: unknown): boolean {
  return isErrno(error, 'ENOSPC') || isErrno(error, 'EDQUOT');
}

function diskFull(path: string): Error {
  return Object.assign(new Error(`ENOSPC: no space left on device for ${path}`), { code: 'ENOSPC' });
}

function setAside(path: string, why: string): string {
  const aside = `${path}.${why}-${timeName()}`;
  disk.rename(path, aside);
  return aside;
}

function timeName(): string {
  return new Date().toISOString().replace(/[-:]/g, '').replace('.', '');
}

export function readAt(fd: number, path: string, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const read = readSync(fd, bytes, filled, length - filled, offset + filled);
    if (read === 0) throw new Error(`${path} is shorter than expected`);
    filled += read;
  }
  return bytes;
}
