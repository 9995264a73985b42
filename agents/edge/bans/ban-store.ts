// The console's bans a node holds: in memory by id, on disk as a journal. Expiry is kept on the monotonic clock, so a step
// of the wall clock neither ends a ban early nor prolongs it; the journal and Caddy get wall times of this machine.

import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type BanChange, JournalRecordSchema } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import {
  type Ban,
  type BanPosition,
  BanPositionSchema,
  BanSchema,
  BanSource,
} from '../../../proto/gen/svc/node/v1/bans_pb.js';
import { FOREIGN_JOURNAL, Journal, type JournalDraft } from '../../kit/journal.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { decodeHeader, encodeHeader, JOURNAL_FORMAT } from '../config/record.ts';
import { type Clock, machineClock } from '../lib/clock.ts';
import { formatCidr, isBannable, parseCidr } from './cidr.ts';

/** No ban lasts longer, whatever a clock says. */
export const MAX_BAN_MS = 7 * 24 * 3600 * 1000;
const COMPACT_MIN_BYTES = 256 * 1024;
const BANS_PER_RECORD = 1000;
/** With more bans waiting for room, writing is tried by the maintenance, and not with each change. */
const FLUSH_AT_ONCE = 1000;
const CLOCK_STEP_MS = 2000;
const REWRITE_TRIES = 3;
const ID = /^[A-Za-z0-9_-]{1,128}$/;

export interface BanRow {
  id: string;
  /** "" = global. */
  siteId: string;
  /** Canonical, with prefix length. */
  cidr: string;
  source: BanSource;
  createdAtMs: number;
  /** On the monotonic clock. */
  expiresAt: number;
  reason: string;
}

/** A change as it was taken over: what is live now and what is gone. */
export interface StoredBanChange {
  upserts: BanRow[];
  removedIds: string[];
  /** CIDRs of global bans whose effective expiry may have changed. */
  globalCidrs: Set<string>;
}

export interface BanStoreOptions {
  path: string;
  nodeId: string;
  clusterId: string;
  log: Log;
  clock?: Clock;
}

export class BanStore {
  private readonly log: Log;
  private readonly clock: Clock;
  private readonly header: Uint8Array;
  private journal!: Journal;
  private bans = new Map<string, BanRow>();
  private byCidr = new Map<string, Set<BanRow>>();
  private storedPosition = create(BanPositionSchema);
  /** Ids changed since `behind`, and whether the file has a version of them: of each only the final state is written. */
  private readonly unwritten = new Map<string, boolean>();
  /** Where the file ends, while the disk refuses what came after. */
  private behind: BanPosition | undefined;
  private diskProblem = '';
  /** The journal is of another state than the memory and must not be appended to. */
  private detached = false;
  private writing: Promise<boolean> | undefined;
  private wallMinusMonotonic: number;
  /** Bytes of the journal right after it was last written anew. */
  private baseBytes = 0;
  private baseCount = 0;

  private constructor(options: BanStoreOptions) {
    this.log = options.log;
    this.clock = options.clock ?? machineClock;
    this.header = encodeHeader(options.nodeId, options.clusterId);
    this.wallMinusMonotonic = this.clock.wall() - this.clock.monotonic();
  }

  static open(options: BanStoreOptions): BanStore {
    const store = new BanStore(options);
    store.journal = Journal.open({
      path: options.path,
      log: options.log,
      header: store.header,
      accept: (payload) => {
        const header = decodeHeader(payload);
        return header?.format === JOURNAL_FORMAT && header.clusterId === options.clusterId;
      },
      onRecord: (payload) => store.load(payload),
      keepsBefore: true,
    });
    // After damage the bans before it are kept, but what came later is unknown: fetch everything.
    if (store.journal.damage !== '') store.storedPosition = create(BanPositionSchema);
    return store;
  }

  get position(): BanPosition {
    return this.storedPosition;
  }

  get size(): number {
    return this.bans.size;
  }

  get problem(): string {
    return this.diskProblem || this.journal.problem;
  }

  /** The file was another cluster's and set aside: what it said holds no more. */
  get isOfAnotherCluster(): boolean {
    return this.journal.damage === FOREIGN_JOURNAL;
  }

  /** Remaining life of a ban in ms, at most seven days; not positive when it is over. */
  remainingMs(row: Pick<BanRow, 'expiresAt'>): number {
    return Math.min(row.expiresAt - this.clock.monotonic(), MAX_BAN_MS);
  }

  /** The latest end among the global bans of exactly this CIDR as remaining ms; undefined when there is none. */
  globalRemainingMs(cidr: string): number | undefined {
    let longest: number | undefined;
    for (const row of this.byCidr.get(cidr) ?? []) {
      const remaining = this.remainingMs(row);
      if (remaining > 0 && (longest === undefined || remaining > longest)) longest = remaining;
    }
    return longest;
  }

  globalCidrs(): Iterable<string> {
    return this.byCidr.keys();
  }

  /** Live bans in the order in which they deserve room: manual oldest first, then automatic newest first. */
  ordered(): BanRow[] {
    const rows = [...this.bans.values()].filter((row) => this.remainingMs(row) > 0);
    return rows.sort((left, right) => {
      const leftAuto = left.source === BanSource.AUTO;
      if (leftAuto !== (right.source === BanSource.AUTO)) return leftAuto ? 1 : -1;
      return leftAuto ? right.createdAtMs - left.createdAtMs : left.createdAtMs - right.createdAtMs;
    });
  }

  /** The ban as Caddy and the journal want it: expiry by this machine's wall clock. */
  toMessage(row: BanRow): Ban {
    return create(BanSchema, {
      id: row.id,
      siteId: row.siteId,
      cidr: row.cidr,
      source: row.source,
      expiresAtMs: BigInt(Math.ceil(this.clock.wall() + this.remainingMs(row))),
      createdAtMs: BigInt(row.createdAtMs),
      reason: row.reason,
    });
  }

  /**
   * Checks bans as they came from the console. `serverOffsetMs` is the console's clock minus this machine's. Malformed and
   * expired ones are left out and returned as ids to remove, so that an older version of theirs cannot linger.
   */
  accept(bans: readonly Ban[], serverOffsetMs: number): { rows: BanRow[]; refusedIds: string[] } {
    const rows: BanRow[] = [];
    const refusedIds: string[] = [];
    const now = this.clock.monotonic();
    for (const ban of bans) {
      const expiresAtMs = Number(ban.expiresAtMs) - serverOffsetMs;
      const row = this.check(ban, Math.min(expiresAtMs - this.clock.wall(), MAX_BAN_MS), now);
      if (row) rows.push(row);
      else if (ID.test(ban.id)) refusedIds.push(ban.id);
    }
    return { rows, refusedIds };
  }

  private check(ban: Ban, remainingMs: number, now: number): BanRow | undefined {
    const cidr = parseCidr(ban.cidr);
    if (!ID.test(ban.id) || (ban.siteId !== '' && !ID.test(ban.siteId)) || !cidr || !isBannable(cidr)) {
      this.log.warn('malformed ban skipped', { id: ban.id.slice(0, 128), cidr: ban.cidr.slice(0, 64) });
      return undefined;
    }
    if (!(remainingMs > 0)) return undefined;
    return {
      id: ban.id,
      siteId: ban.siteId,
      cidr: formatCidr(cidr),
      source: ban.source,
      createdAtMs: Number(ban.createdAtMs),
      expiresAt: now + remainingMs,
      reason: ban.reason.slice(0, 64),
    };
  }

  /** Journals a change and takes it over. A full disk does not stop it. */
  apply(position: BanPosition, upserts: BanRow[], removedIds: string[]): StoredBanChange {
    if (!this.detached && (this.behind || !this.append(position, upserts, removedIds))) {
      this.behind ??= this.storedPosition;
      for (const id of [...upserts.map((row) => row.id), ...removedIds])
        if (!this.unwritten.has(id)) this.unwritten.set(id, this.bans.has(id));
    }
    const globalCidrs = new Set<string>();
    for (const id of removedIds) this.drop(id, globalCidrs);
    for (const row of upserts) this.put(row, globalCidrs);
    this.storedPosition = position;
    this.forgetUnwritten(removedIds);
    if (this.unwritten.size <= FLUSH_AT_ONCE) this.flush();
    return { upserts, removedIds, globalCidrs };
  }

  /** What is gone and was never in the file has not to be removed from it. */
  private forgetUnwritten(ids: Iterable<string>): void {
    for (const id of ids) if (this.unwritten.get(id) === false && !this.bans.has(id)) this.unwritten.delete(id);
  }

  /** What the file lacks, as one change that follows `position`; undefined when the file is not there or lacks nothing. */
  changeSince(position: BanPosition): { target: BanPosition; upserts: BanRow[]; removedIds: string[] } | undefined {
    const { behind } = this;
    if (!behind || position.epoch !== behind.epoch || position.sequence !== behind.sequence) return undefined;
    return { target: this.storedPosition, ...this.unwrittenRows() };
  }

  private unwrittenRows(): { upserts: BanRow[]; removedIds: string[] } {
    const upserts: BanRow[] = [];
    const removedIds: string[] = [];
    for (const id of this.unwritten.keys()) {
      const row = this.bans.get(id);
      if (row) upserts.push(row);
      else removedIds.push(id);
    }
    return { upserts, removedIds };
  }

  /** Writes one record; false when the disk refuses. */
  private append(position: BanPosition | undefined, upserts: readonly BanRow[], removedIds: string[]): boolean {
    const messages = upserts.map((row) => this.toMessage(row));
    try {
      this.journal.append(this.encode({ ...(position ? { position } : {}), upserts: messages, removedIds }));
      return true;
    } catch (error) {
      this.noteDiskProblem(error);
      return false;
    }
  }

  /**
   * Puts exactly these bans in place of all. Returns what changed, and whether the journal holds it: with a full disk the
   * bans are in force all the same, and the journal is left alone until it can be written as a whole.
   */
  async replaceAll(position: BanPosition, rows: readonly BanRow[]): Promise<StoredBanChange & { onDisk: boolean }> {
    const globalCidrs = new Set(this.byCidr.keys());
    const kept = new Set(rows.map((row) => row.id));
    const removedIds = [...this.bans.keys()].filter((id) => !kept.has(id));
    const takeOver = (): void => {
      this.bans = new Map();
      this.byCidr = new Map();
      for (const row of rows) this.put(row, globalCidrs);
      this.storedPosition = position;
      this.writtenWhole();
    };
    const onDisk = await this.writeAnew(rows, position, takeOver);
    if (!onDisk) takeOver();
    return { upserts: [...rows], removedIds, globalCidrs, onDisk };
  }

  /** Replaces the journal by these bans, one replacement at a time; false when the disk refuses. */
  private async writeAnew(
    rows: readonly BanRow[],
    position: BanPosition,
    swapped: () => void,
    spoilt = false,
  ): Promise<boolean> {
    while (this.writing) await this.writing;
    this.writing = this.replaceJournal(rows, position, swapped, spoilt).finally(() => {
      this.writing = undefined;
    });
    return this.writing;
  }

  private async replaceJournal(
    rows: readonly BanRow[],
    position: BanPosition,
    swapped: () => void,
    spoilt: boolean,
  ): Promise<boolean> {
    let draft: JournalDraft | undefined;
    try {
      draft = this.journal.startShadow();
      for (const record of this.recordsOf(rows, position)) {
        draft.append(record);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await this.journal.replace(
        draft,
        () => {
          swapped();
          this.detached = false;
          this.diskProblem = '';
          this.writtenWhole();
          this.noteBase();
        },
        spoilt,
      );
      return true;
    } catch (error) {
      draft?.discard();
      this.detached = true;
      this.writtenWhole();
      this.noteDiskProblem(error);
      return false;
    }
  }

  /** Forgets what is over and rewrites the journal when it is mostly history or the wall clock was set. */
  async maintain(): Promise<void> {
    for (const row of this.bans.values()) if (this.remainingMs(row) <= 0) this.drop(row.id, new Set());
    this.forgetUnwritten(this.unwritten.keys());
    if (this.detached) {
      await this.rejoin();
      return;
    }
    this.flush();
    if (this.behind || this.journal.busy) return;
    const difference = this.clock.wall() - this.clock.monotonic();
    const stepped = Math.abs(difference - this.wallMinusMonotonic) > CLOCK_STEP_MS;
    const perBan = this.baseCount > 0 ? this.baseBytes / this.baseCount : 100;
    const live = this.bans.size * perBan;
    if (!stepped && this.journal.bytes - live <= Math.max(live, COMPACT_MIN_BYTES)) return;
    if (stepped)
      this.log.warn('machine clock was set, bans keep their remaining time', {
        byMs: difference - this.wallMinusMonotonic,
      });
    this.wallMinusMonotonic = difference;
    const records = this.recordsOf(this.ordered(), this.storedPosition);
    await this.journal.rewrite(
      async (draft) => {
        for (const record of records) {
          draft.append(record);
          await new Promise((resolve) => setImmediate(resolve));
        }
      },
      () => this.noteBase(),
    );
  }

  /** Writes the journal as a whole after the disk refused that; changes that arrive meanwhile make it try again later. */
  private async rejoin(spoilt = false): Promise<void> {
    const position = this.storedPosition;
    await this.writeAnew(this.ordered(), position, () => undefined, spoilt);
    if (this.storedPosition !== position) this.detached = true;
  }

  /** Writes the file anew because Caddy cannot read it. Rejects when the disk refuses. */
  async rewrite(): Promise<void> {
    for (let tries = 0; tries < REWRITE_TRIES; tries++) {
      await this.rejoin(true);
      if (!this.detached) return;
    }
    throw new Error(this.diskProblem || 'bans change faster than the journal can be written');
  }

  /** Writes what the disk refused before. */
  flush(): void {
    if (!this.behind) return;
    const { upserts, removedIds } = this.unwrittenRows();
    // What is written before the position counts only with it.
    for (; upserts.length > BANS_PER_RECORD; upserts.splice(0, BANS_PER_RECORD)) {
      const rows = upserts.slice(0, BANS_PER_RECORD);
      if (!this.append(undefined, rows, [])) return;
      for (const { id } of rows) this.unwritten.delete(id);
    }
    if (!this.append(this.storedPosition, upserts, removedIds)) return;
    this.writtenWhole();
    this.diskProblem = '';
  }

  /** Nothing waits to be appended: the file has it all, or is of another state. */
  private writtenWhole(): void {
    this.unwritten.clear();
    this.behind = undefined;
  }

  private noteDiskProblem(error: unknown): void {
    if (this.diskProblem === '') this.log.error('ban journal not writable, serving bans from memory', { error });
    this.diskProblem = `bans not on disk: ${errorText(error)}`;
  }

  close(): Promise<void> {
    return this.journal.close();
  }

  private noteBase(): void {
    this.baseBytes = this.journal.bytes;
    this.baseCount = this.bans.size;
  }

  private *recordsOf(rows: readonly BanRow[], position: BanPosition): Generator<Uint8Array> {
    for (let from = 0; from < rows.length; from += BANS_PER_RECORD) {
      yield this.encode({ upserts: rows.slice(from, from + BANS_PER_RECORD).map((row) => this.toMessage(row)) });
    }
    // Without a position a file does not say that it is complete.
    if (position.epoch > 0n) yield this.encode({ position });
  }

  private encode(change: Omit<Partial<BanChange>, '$typeName' | '$unknown'>): Uint8Array {
    return toBinary(
      JournalRecordSchema,
      create(JournalRecordSchema, { record: { case: 'bans', value: change as BanChange } }),
    );
  }

  private load(payload: Buffer): boolean {
    let change: BanChange;
    try {
      const { record } = fromBinary(JournalRecordSchema, payload);
      if (record.case !== 'bans') return false;
      change = record.value;
    } catch (error) {
      this.log.error('unreadable record in ban journal', { error });
      return false;
    }
    const now = this.clock.monotonic();
    const wall = this.clock.wall();
    const ignored = new Set<string>();
    for (const id of change.removedIds) this.drop(id, ignored);
    for (const ban of change.upserts) {
      const row = this.check(ban, Math.min(Number(ban.expiresAtMs) - wall, MAX_BAN_MS), now);
      if (row) this.put(row, ignored);
      else this.drop(ban.id, ignored);
    }
    if (change.position) this.storedPosition = change.position;
    return true;
  }

  private put(row: BanRow, touched: Set<string>): void {
    this.drop(row.id, touched);
    this.bans.set(row.id, row);
    if (row.siteId !== '') return;
    const rows = this.byCidr.get(row.cidr);
    if (rows) rows.add(row);
    else this.byCidr.set(row.cidr, new Set([row]));
    touched.add(row.cidr);
  }

  private drop(id: string, touched: Set<string>): void {
    const row = this.bans.get(id);
    if (!row) return;
    this.bans.delete(id);
    if (row.siteId !== '') return;
    const rows = this.byCidr.get(row.cidr)!;
    rows.delete(row);
    if (rows.size === 0) this.byCidr.delete(row.cidr);
    touched.add(row.cidr);
  }
}
