// Certificates with their keys on disk: an append-only file that Caddy reads (features/handshake/pack.go), without a header. What is in it
// is found again by the fingerprint of the leaf; nothing of it stays in memory. A torn tail is cut, and damage is cut out: what
// comes behind it serves while the console is away. What nobody names any more goes when it is more than half of the file.
import { closeSync, fstatSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CertificateMaterial, CertificateStaple } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import { disk } from '../../kit/disk.ts';
import { isErrno, removeFile, syncFolder, writeAll } from '../../kit/files.ts';
import { frameRecord, JournalDraft, readAt, scanJournal } from '../../kit/journal.ts';
import type { Log } from '../../kit/log.ts';
import { type Fingerprint, fingerprintOf } from './fingerprint.ts';
import { decodeRecord, encodeMaterial, encodeStaple, kindOfRecord, MAX_PAYLOAD_BYTES } from './pack-record.ts';

const COMPACT_MIN_BYTES = 1024 * 1024;
const COPY_SLICE = 100;
const FRAME_BYTES = 8;

/** Where the payload of a record is. */
interface Place {
  offset: number;
  length: number;
}

interface Row {
  material: Place | undefined;
  staple: Place | undefined;
}

export interface CertificatePackOptions {
  path: string;
  log: Log;
}

export class CertificatePack {
  private readonly path: string;
  private readonly log: Log;
  /** -1 while there is no file. */
  private fd = -1;
  private size = 0;
  /** Behind `size` may be bytes that are none of ours. */
  private hasTail = false;
  private readonly rows = new Map<Fingerprint, Row>();
  /** Rows with material. */
  private materials = 0;
  /** Appends, and the change of files, follow one another. */
  private last: Promise<unknown> = Promise.resolve();
  private compacting = false;
  private closed = false;

  private constructor({ path, log }: CertificatePackOptions) {
    this.path = path;
    this.log = log;
  }

  /** Reads where what is. Throws when the disk fails. */
  static open(options: CertificatePackOptions): CertificatePack {
    const pack = new CertificatePack(options);
    removeFile(nextPath(options.path));
    try {
      pack.fd = openSync(options.path, 'r+');
    } catch (error) {
      if (!isErrno(error, 'ENOENT')) throw error;
      return pack;
    }
    pack.read();
    return pack;
  }

  get bytes(): number {
    return this.size;
  }

  /** Certificates of which there is material. */
  get certificates(): number {
    return this.materials;
  }

  has(fingerprint: Fingerprint): boolean {
    return this.rows.get(fingerprint)?.material !== undefined;
  }

  /** The chain in DER, leaf first; undefined when there is no material, or it cannot be read. */
  chain(fingerprint: Fingerprint): readonly Uint8Array[] | undefined {
    const record = this.readRecord(this.rows.get(fingerprint)?.material);
    return record?.case === 'material' ? record.value.chain : undefined;
  }

  staple(fingerprint: Fingerprint): CertificateStaple | undefined {
    const record = this.readRecord(this.rows.get(fingerprint)?.staple);
    return record?.case === 'staple' ? record.value : undefined;
  }

  /** Resolves when all of it is on disk; rejects when the disk refuses, and then none of it is there. */
  put(materials: readonly CertificateMaterial[]): Promise<void> {
    return this.append(
      materials.map((material) => ({
        fingerprint: fingerprintOf(material.fingerprint),
        payload: encodeMaterial(material),
      })),
      (row, place) => this.noteMaterial(row, place),
    );
  }

  putStaples(staples: readonly CertificateStaple[]): Promise<void> {
    return this.append(
      staples.map((staple) => ({ fingerprint: fingerprintOf(staple.fingerprint), payload: encodeStaple(staple) })),
      (row, place) => {
        row.staple = place;
      },
    );
  }

  /**
   * Writes the file anew without what is not to be kept, when that and what was replaced is more than half of it. Answers
   * whether there is another file now. Rejects when the disk refuses; the file is then what it was.
   */
  async compactIfWorthwhile(isKept: (fingerprint: Fingerprint) => boolean): Promise<boolean> {
    if (this.compacting || this.size < COMPACT_MIN_BYTES) return false;
    let live = 0;
    for (const [fingerprint, row] of this.rows) if (isKept(fingerprint)) live += bytesOf(row);
    if (this.size - live <= this.size / 2) return false;
    await this.compact(isKept);
    return true;
  }

  /** Writes the file anew with what is to be kept. */
  async compact(isKept: (fingerprint: Fingerprint) => boolean): Promise<void> {
    if (this.compacting || this.fd < 0) return;
    this.compacting = true;
    const before = this.size;
    let draft: JournalDraft | undefined;
    try {
      draft = new JournalDraft(nextPath(this.path));
      const kept = await this.copy(draft, isKept);
      await draft.sync();
      await this.exclusive(() => this.swap(draft!, before, kept));
    } catch (error) {
      draft?.discard();
      throw error;
    } finally {
      this.compacting = false;
    }
    this.log.info('certificate pack compacted', {
      bytesBefore: before,
      bytes: this.size,
      certificates: this.certificates,
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.last.catch(() => undefined);
    if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
  }

  private read(): void {
    const onRecord = (payload: Buffer, offset: number): boolean => {
      const kind = kindOfRecord(payload);
      // A newer agent may keep something else there, too.
      if (!kind) return true;
      this.note(kind.fingerprint, kind.isStaple, { offset, length: payload.length });
      return true;
    };
    const size = fstatSync(this.fd).size;
    const whole: [number, number][] = [];
    let from = 0;
    for (;;) {
      const { validBytes, next } = scanJournal(this.fd, onRecord, from);
      whole.push([from, validBytes]);
      if (next === undefined) break;
      from = next;
    }
    this.size = whole.at(-1)![1];
    if (whole.length > 1) this.cutOut(whole, size);
    else if (this.size < size) {
      this.log.warn('certificate pack ended in a partial record, removed', { cutBytes: size - this.size });
      disk.truncate(this.fd, this.size);
    }
  }

  /** Writes the file anew from what is whole of it. */
  private cutOut(whole: readonly (readonly [number, number])[], size: number): void {
    const draft = new JournalDraft(nextPath(this.path));
    try {
      this.rows.clear();
      this.materials = 0;
      for (const [from, to] of whole) {
        scanJournal(
          this.fd,
          (payload, offset) => {
            if (offset >= to) return false;
            const kind = kindOfRecord(payload);
            if (kind)
              this.note(kind.fingerprint, kind.isStaple, { offset: draft.append(payload), length: payload.length });
            return true;
          },
          from,
        );
      }
      draft.syncNow();
      this.useFile(draft.install(this.path));
    } catch (error) {
      draft.discard();
      throw error;
    }
    this.log.error('certificate pack damaged, readable records kept', { bytesBefore: size, bytes: this.size });
  }

  private note(fingerprint: Fingerprint, isStaple: boolean, place: Place): void {
    const row = this.row(fingerprint);
    if (isStaple) row.staple = place;
    else this.noteMaterial(row, place);
  }

  private noteMaterial(row: Row, place: Place): void {
    if (!row.material) this.materials++;
    row.material = place;
  }

  private row(fingerprint: Fingerprint): Row {
    let row = this.rows.get(fingerprint);
    if (!row) {
      row = { material: undefined, staple: undefined };
      this.rows.set(fingerprint, row);
    }
    return row;
  }

  private append(
    records: readonly { fingerprint: Fingerprint; payload: Uint8Array }[],
    note: (row: Row, place: Place) => void,
  ): Promise<void> {
    if (records.some(({ payload }) => payload.length > MAX_PAYLOAD_BYTES))
      return Promise.reject(new Error('a certificate is too large for the certificate pack'));
    return this.exclusive(async () => {
      if (this.closed) throw new Error('the certificate pack is closed');
      this.openFile();
      this.cutTail();
      const from = this.size;
      const frames = Buffer.concat(records.map(({ payload }) => frameRecord(payload)));
      this.hasTail = true;
      try {
        writeAll(this.fd, frames, from);
        await disk.syncSoon(this.fd);
      } catch (error) {
        this.tryToCutTail();
        throw error;
      }
      this.hasTail = false;
      this.size += frames.length;
      let offset = from + FRAME_BYTES;
      for (const { fingerprint, payload } of records) {
        note(this.row(fingerprint), { offset, length: payload.length });
        offset += payload.length + FRAME_BYTES;
      }
    });
  }

  private openFile(): void {
    if (this.fd >= 0) return;
    const fd = disk.open(this.path, 'wx+', 0o600);
    try {
      syncFolder(dirname(this.path));
    } catch (error) {
      closeSync(fd);
      removeFile(this.path);
      throw error;
    }
    this.fd = fd;
  }

  /**
   * Removes what a write or a sync that failed left behind the last record. A sync that follows would say nothing about it: the
   * kernel may have dropped what it could not write.
   */
  private cutTail(): void {
    if (!this.hasTail) return;
    disk.truncate(this.fd, this.size);
    this.hasTail = false;
  }

  private tryToCutTail(): void {
    try {
      this.cutTail();
    } catch (error) {
      this.log.warn('the end of the pack of certificates is not cut, the next write does it', { error });
    }
  }

  private async copy(
    draft: JournalDraft,
    isKept: (fingerprint: Fingerprint) => boolean,
  ): Promise<Map<Fingerprint, Row>> {
    const copied = new Map<Fingerprint, Row>();
    let count = 0;
    for (const [fingerprint, row] of [...this.rows]) {
      if (!isKept(fingerprint)) continue;
      copied.set(fingerprint, {
        material: this.copyRecord(draft, row.material),
        staple: this.copyRecord(draft, row.staple),
      });
      if (++count % COPY_SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
      if (this.closed) throw new Error('the certificate pack is closed');
    }
    return copied;
  }

  private copyRecord(draft: JournalDraft, place: Place | undefined): Place | undefined {
    if (!place) return undefined;
    return { offset: draft.append(readAt(this.fd, this.path, place.offset, place.length)), length: place.length };
  }

  /** Takes over what was appended since `tailFrom`, and puts the draft in place of the file. */
  private async swap(draft: JournalDraft, tailFrom: number, copied: ReadonlyMap<Fingerprint, Row>): Promise<void> {
    const shift = draft.bytes - tailFrom;
    if (this.size > tailFrom) {
      draft.write(readAt(this.fd, this.path, tailFrom, this.size - tailFrom));
      await draft.sync();
    }
    const old = this.fd;
    this.useFile(draft.install(this.path), old);
    const moved = (place: Place | undefined, to: Place | undefined): Place | undefined =>
      place && place.offset >= tailFrom ? { offset: place.offset + shift, length: place.length } : to;
    for (const [fingerprint, row] of [...this.rows]) {
      const to = copied.get(fingerprint);
      const material = moved(row.material, to?.material);
      if (row.material && !material) this.materials--;
      row.material = material;
      row.staple = moved(row.staple, to?.staple);
      if (!row.material && !row.staple) this.rows.delete(fingerprint);
    }
  }

  private useFile({ fd, size, problem }: ReturnType<JournalDraft['install']>, old = this.fd): void {
    this.fd = fd;
    this.size = size;
    this.hasTail = false;
    if (problem !== undefined)
      this.log.warn('a crash of the machine may bring back the pack of certificates before', { error: problem });
    if (old >= 0) closeSync(old);
  }

  private readRecord(place: Place | undefined): ReturnType<typeof decodeRecord> | undefined {
    if (!place) return undefined;
    try {
      return decodeRecord(readAt(this.fd, this.path, place.offset, place.length));
    } catch (error) {
      this.log.warn('unreadable record in certificate pack', { error });
      return undefined;
    }
  }

  private exclusive<T>(work: () => Promise<T>): Promise<T> {
    const run = this.last.then(work, work);
    this.last = run.catch(() => undefined);
    return run;
  }
}

function nextPath(path: string): string {
  return `${path}.next`;
}

function bytesOf({ material, staple }: Row): number {
  return [material, staple].reduce((sum, place) => sum + (place ? place.length + FRAME_BYTES : 0), 0);
}
