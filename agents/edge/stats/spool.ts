// Batches of counts on disk between the data plane and the console. A drain becomes one file with its batches and the data
// plane's number, in one step: whoever is killed, a drain is there whole or is asked for again. The newest file stays, sent or
// not, because it says where numbers go on.
//
// The console takes batches by number, without a gap. Numbers are this spool's own plus a shift: a spool that was lost or
// put back to an earlier state would give numbers again that the console has already taken, so what was never sent is shifted
// behind them as soon as the console has said what it has.
import type { SiteMinute, StatsGap } from '../../../proto/gen/svc/node/v1/node_pb.js';
import { isErrno } from '../../kit/files.ts';
import type { Log } from '../../kit/log.ts';
import {
  type BatchContent,
  type BatchFile,
  batchFileName,
  cutBatches,
  decodeBatch,
  encodeBatches,
  gap,
  readBatchFileName,
} from './batch-file.ts';
import type { SpoolFiles } from './spool-files.ts';
import { joined, NEW_STATE, readState, type Span, type SpoolState, STATE_FILE, writeState } from './spool-state.ts';

const MAX_SPOOL_BYTES = 64 * 1024 * 1024;
const MAX_FILES = 10_000;
/** Files take room in whole blocks. */
const BLOCK_BYTES = 4096;
const HOLD_SECONDS = 24 * 3600;
const MINUTE = 60n;
const MAX_TIME = 10n ** 11n;
/** What keeps a file from being read for a while. */
const PASSING = ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'];

export interface SpoolOptions {
  files: SpoolFiles;
  log: Log;
  /** The console's clock, Unix seconds. */
  now: () => number;
  maxBytes?: number;
  maxFiles?: number;
}

/** A batch as the console gets it. */
export interface Outgoing extends BatchContent {
  sequence: bigint;
  completeUntil: bigint;
  firstHeld: bigint;
}

export class Spool {
  private readonly files: SpoolFiles;
  private readonly log: Log;
  private readonly now: () => number;
  private readonly maxBytes: number;
  private readonly maxFiles: number;
  /** Oldest first. */
  private stored: BatchFile[] = [];
  private state: SpoolState;
  /** The file of the state is behind. */
  private unsaved = true;
  /** Own number of the last batch that the console has; below the first stored one while that is not known. */
  private taken = 0n;
  /** The console's number of the last batch sent by this process. */
  private sent = 0n;
  private content: { name: string; bytes: Uint8Array | undefined } | undefined;

  /** Reads the names of the stored files. Never throws for what stands in a file, nor for a full disk. */
  constructor(options: SpoolOptions) {
    const { files, log } = options;
    this.files = files;
    this.log = log;
    this.now = options.now;
    this.maxBytes = options.maxBytes ?? MAX_SPOOL_BYTES;
    this.maxFiles = options.maxFiles ?? MAX_FILES;
    this.load();
    const state = readState(this.files);
    this.state = state ?? NEW_STATE;
    if (!state && this.stored.length > 0) {
      // Which of them the console has under the numbers they had cannot be known, so they may be passed over.
      log.error('statistics state lost, earlier counts may be missing', {
        files: this.stored.length,
      });
      this.state = { ...NEW_STATE, gaps: joined(this.stored.map(({ from, to }) => [from, to])) };
    }
    const next = this.last + 1n;
    const { unsentFrom } = this.state;
    this.state = { ...this.state, unsentFrom: unsentFrom !== undefined && unsentFrom < next ? unsentFrom : next };
    this.taken = (this.stored[0]?.first ?? next) - 1n;
    try {
      this.save();
    } catch (error) {
      // The next batch is not written before this is.
      log.warn('statistics state not written', { error });
    }
  }

  /** The data plane's number of the last drain that is stored, or was. */
  get drained(): bigint {
    return this.stored.at(-1)?.drained ?? 0n;
  }

  /** Whether the console has to say what it has before anything can be sent. */
  get unconfirmed(): boolean {
    return this.state.unsentFrom !== undefined;
  }

  get bytes(): number {
    return this.stored.reduce((sum, { bytes }) => sum + onDisk(bytes), 0);
  }

  /** Batches that the console does not have. */
  get waiting(): bigint {
    return this.last - this.taken;
  }

  /**
   * Stores what was drained, under `drained`. `completeUntil`: with it everything before is counted, Unix seconds; undefined
   * when there is more to drain. Throws when the disk refuses: the data plane keeps it.
   */
  add(drained: bigint, content: BatchContent, completeUntil: number | undefined): void {
    this.save();
    const newest = this.stored.at(-1);
    this.makeRoom(encodeBatches(cutBatches(content.minutes, content.gaps)).length);
    const spans = content.gaps.map(({ from, to }): Span => [time(from), time(to)]);
    const told = joined([...spans, ...this.state.gaps]).map(([from, to]) => gap(from, to));
    const batches = cutBatches(content.minutes, told);
    const first = this.last + 1n;
    const data = encodeBatches(batches);
    const until = completeUntil ?? newest?.completeUntil ?? 0;
    const file = {
      first,
      last: first + BigInt(batches.length) - 1n,
      ...extent(content.minutes, told, until),
      completeUntil: until,
      drained,
    };
    const name = batchFileName(file);
    this.files.write(name, data);
    this.stored.push({ ...file, name, bytes: data.length });
    // Told twice if the process ends here, which says nothing else than once.
    if (this.state.gaps.length > 0) this.change({ gaps: [] });
    this.removeTaken();
  }

  /** Nothing was counted since the last drain: only how far counting is complete moves on. Throws when the disk refuses. */
  idle(completeUntil: number): void {
    const newest = this.stored.at(-1);
    // What it says of the time before it is as true as it was.
    if (newest && newest.last > this.taken && this.state.gaps.length === 0) newest.completeUntil = completeUntil;
    else this.add(this.drained, { minutes: [], gaps: [] }, completeUntil);
  }

  /** The oldest batch that the console does not have; undefined when it has all. Throws when the disk fails for a while. */
  next(): { batch: Outgoing; current: boolean } | undefined {
    const oldest = this.stored[0];
    const number = oldest && this.taken + 1n < oldest.first ? oldest.first : this.taken + 1n;
    if (!oldest || number > this.last) return undefined;
    const { shift } = this.state;
    const completeUntil = number === this.last ? this.watermark() : 0;
    return {
      batch: {
        ...this.contentOf(number),
        sequence: number + shift,
        completeUntil: BigInt(completeUntil),
        firstHeld: oldest.first + shift,
      },
      current: number >= this.stored.at(-1)!.first,
    };
  }

  /** The console says what it has, before anything was sent by this process. Throws when the disk refuses. */
  confirm(cursor: bigint): void {
    const { unsentFrom, shift } = this.state;
    if (unsentFrom !== undefined) {
      const ahead = cursor + 1n - (unsentFrom + shift);
      if (ahead > 0n && unsentFrom > 1n) {
        this.log.warn('console has counts unknown to this node, numbering continues after them', { cursor });
      }
      this.change({ shift: ahead > 0n ? shift + ahead : shift, unsentFrom: undefined });
    }
    if (cursor > this.sent) this.sent = cursor;
    this.take(cursor);
  }

  /** The console's answer to the batch `sequence`. Answers whether it moved on. Throws when the disk refuses. */
  acknowledge(sequence: bigint, cursor: bigint): boolean {
    const before = this.taken;
    if (sequence > this.sent) this.sent = sequence;
    if (cursor > this.sent) {
      this.log.warn('another process reports statistics under the identity of this node', { cursor, sequence });
      this.change({ shift: this.state.shift + cursor - this.sent });
      this.sent = cursor;
    }
    this.take(cursor);
    return cursor >= sequence || this.taken !== before;
  }

  private get last(): bigint {
    return this.stored.at(-1)?.last ?? 0n;
  }

  private load(): void {
    for (const name of this.files.list()) {
      if (name === STATE_FILE) continue;
      const file = readBatchFileName(name);
      // Half written when the process ended, or nobody's.
      if (file) this.stored.push({ ...file, bytes: this.sizeOf(name) });
      else this.files.remove(name);
    }
    this.stored.sort((a, b) => (a.first < b.first ? -1 : 1));
    this.stored = this.stored.filter(({ first }, at) => at === 0 || first > this.stored[at - 1]!.last);
  }

  private sizeOf(name: string): number {
    try {
      return this.files.size(name);
    } catch {
      return 0;
    }
  }

  /** Gives up the oldest files until `bytes` more have room; what that loses stands in the state before a file goes. */
  private makeRoom(bytes: number): void {
    const going: BatchFile[] = [];
    let size = this.bytes + onDisk(bytes);
    // The newest says where numbers go on.
    for (const file of this.stored.slice(0, -1)) {
      if (size <= this.maxBytes && this.stored.length - going.length < this.maxFiles) break;
      going.push(file);
      size -= onDisk(file.bytes);
    }
    if (going.length === 0) return;
    const lost = joined(going.filter(({ last }) => last > this.taken).map(({ from, to }) => [from, to]));
    if (lost.length > 0) {
      const holds = this.state.lostFrom > 0 && this.now() < this.state.lostUntil;
      const [lostFrom] = lost[0]!;
      this.log.warn('statistics spool full, oldest batches discarded', { files: going.length, from: lostFrom });
      this.change({
        gaps: joined([...this.state.gaps, ...lost]),
        ...(holds
          ? { lostFrom: Math.min(lostFrom, this.state.lostFrom) }
          : { lostFrom, lostUntil: this.now() + HOLD_SECONDS }),
      });
    }
    for (const { name } of going) this.files.remove(name);
    this.stored.splice(0, going.length);
    this.take(this.taken + this.state.shift);
  }

  /** What the console has up to `cursor` is not sent again, and its files go. */
  private take(cursor: bigint): void {
    const least = (this.stored[0]?.first ?? 1n) - 1n;
    this.taken = cursor - this.state.shift;
    if (this.taken > this.last) this.taken = this.last;
    if (this.taken < least) this.taken = least;
    this.removeTaken();
  }

  private removeTaken(): void {
    // Numbers that are in no file any more are told before what lies before them goes.
    while (this.stored.length > 1 && this.stored[1]!.first - 1n <= this.taken) {
      try {
        this.files.remove(this.stored[0]!.name);
      } catch (error) {
        // It goes with the next one, or after the next start.
        this.log.warn('reported statistics not removed from disk', { error });
        return;
      }
      this.stored.shift();
    }
  }

  private contentOf(number: bigint): BatchContent {
    const at = this.stored.findIndex(({ last }) => last >= number);
    const file = this.stored[at]!;
    // Somebody took files away: their numbers come all the same, as times of which something is missing.
    if (file.first > number) return { minutes: [], gaps: spanGaps(this.stored[at - 1]!.to, file.from) };
    const content = this.read(file);
    const batch = content && decodeBatch(content, Number(number - file.first));
    if (batch) return batch;
    this.log.error('statistics on disk damaged, their counts are lost', { file: file.name, number });
    return { minutes: [], gaps: spanGaps(file.from, file.to) };
  }

  private read({ name }: BatchFile): Uint8Array | undefined {
    if (this.content?.name === name) return this.content.bytes;
    let bytes: Uint8Array | undefined;
    try {
      bytes = this.files.read(name);
    } catch (error) {
      if (PASSING.some((code) => isErrno(error, code))) throw error;
    }
    this.content = { name, bytes };
    return bytes;
  }

  private change(change: Partial<SpoolState>): void {
    this.state = { ...this.state, ...change };
    this.unsaved = true;
    this.save();
  }

  private save(): void {
    if (!this.unsaved) return;
    writeState(this.files, this.state);
    this.unsaved = false;
  }

  private watermark(): number {
    const { completeUntil } = this.stored.at(-1)!;
    const { lostFrom, lostUntil } = this.state;
    return lostFrom > 0 && this.now() < lostUntil ? Math.min(lostFrom, completeUntil) : completeUntil;
  }
}

/** The time that rows and gaps lie in; `otherwise` when there are none. */
function extent(
  minutes: readonly SiteMinute[],
  gaps: readonly StatsGap[],
  otherwise: number,
): { from: number; to: number } {
  let from = Number.MAX_SAFE_INTEGER;
  let to = 0;
  const cover = (start: bigint, end: bigint): void => {
    from = Math.min(from, time(start));
    to = Math.max(to, time(end));
  };
  for (const { minute } of minutes) cover(minute, minute + MINUTE);
  for (const span of gaps) cover(span.from, span.to);
  return from <= to ? { from, to } : { from: otherwise, to: otherwise };
}

/** Of a clock that cannot be right, what a name can hold. */
function time(seconds: bigint): number {
  return Number(seconds < 0n ? 0n : seconds > MAX_TIME ? MAX_TIME : seconds);
}

function spanGaps(from: number, to: number): StatsGap[] {
  return from < to ? [gap(from, to)] : [];
}

function onDisk(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}
