// The security state with its journal: a batch is written before it is acknowledged, so that what the data plane said once
// survives this process and the next. With a full disk the state is kept in memory, nothing is acknowledged, and the
// journal is written as a whole when there is room. Caddy reads the file when it starts (held.go of features/bans and features/cc).
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  JournalRecordSchema,
  type SecurityBatch,
  SecurityBatchSchema,
  type SecurityMark,
  SecurityMarkSchema,
} from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { OwnBanLiftSchema } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import { Journal, type JournalDraft } from '../../kit/journal.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { decodeHeader, encodeHeader, JOURNAL_FORMAT } from '../config/record.ts';
import { type Clock, machineClock } from '../lib/clock.ts';
import { type OwnBanRow, writeOwnBan } from './own-ban.ts';
import { type Lift, type SecurityCursor, SecurityState } from './security-state.ts';

const COMPACT_MIN_BYTES = 256 * 1024;
const ROWS_PER_RECORD = 500;
const CLOCK_STEP_MS = 2000;

export interface SecurityJournalOptions {
  path: string;
  nodeId: string;
  clusterId: string;
  /** Most own bans kept. */
  capacity: number;
  log: Log;
  clock?: Clock;
}

export class SecurityJournal {
  readonly state: SecurityState;
  private readonly log: Log;
  private readonly clock: Clock;
  private journal!: Journal;
  /** The last batch in the file, and the last one that a crash of the machine leaves there. */
  private written: SecurityCursor = { instanceId: '', sequence: 0n };
  private durable: SecurityCursor = { instanceId: '', sequence: 0n };
  /** The file lacks something the memory has, and must not be appended to. */
  private detached = false;
  private diskProblem = '';
  private baseBytes = 0;
  private wallMinusMonotonic: number;

  private constructor({ log, capacity, clock = machineClock }: SecurityJournalOptions) {
    this.log = log;
    this.clock = clock;
    this.state = new SecurityState(clock, capacity);
    this.wallMinusMonotonic = clock.wall() - clock.monotonic();
  }

  static open(options: SecurityJournalOptions): SecurityJournal {
    const opened = new SecurityJournal(options);
    opened.journal = Journal.open({
      path: options.path,
      log: options.log,
      header: encodeHeader(options.nodeId, options.clusterId),
      accept: (payload) => {
        const header = decodeHeader(payload);
        return header?.format === JOURNAL_FORMAT && header.clusterId === options.clusterId;
      },
      onRecord: (payload) => opened.load(payload),
    });
    opened.written = opened.state.cursor;
    opened.baseBytes = opened.journal.bytes;
    return opened;
  }

  get problem(): string {
    return this.diskProblem || this.journal.problem;
  }

  /**
   * What may be acknowledged to a process: the number of its last batch that is on disk. Brings there what is not; a disk that
   * refuses leaves the number where it was.
   */
  async acknowledgeable(instanceId: string): Promise<bigint> {
    const { written } = this;
    try {
      await this.journal.sync();
      this.durable = written;
    } catch (error) {
      this.log.warn('security journal not on disk, nothing is acknowledged', { error: errorText(error) });
    }
    return this.durable.instanceId === instanceId ? this.durable.sequence : 0n;
  }

  /** Takes a batch over; returns the CIDRs of its global bans, none for a batch known already. */
  takeBatch(batch: SecurityBatch): string[] {
    if (this.state.knows(batch)) return [];
    const malformed = this.state.malformed;
    const globalCidrs = this.state.takeBatch(batch);
    if (this.state.malformed > malformed) this.log.warn('malformed own bans skipped', { instance: batch.instanceId });
    if (this.append(securityRecord(batch))) this.written = this.state.cursor;
    return globalCidrs;
  }

  /** Bans and events from the front were reported. */
  reported(bans: number, events: number): void {
    if (bans + events > 0) this.mark({ reportedBans: BigInt(bans), reportedEvents: BigInt(events) });
  }

  /** Drops the own bans these lifts end; returns the CIDRs of global ones. */
  lift(lifts: readonly Lift[]): string[] {
    const offset = this.clock.wall() - this.clock.monotonic();
    const lifting = lifts.filter((lift) => this.state.hasBanOf(lift));
    if (lifting.length === 0) return [];
    const lifted = lifting.map(({ siteId, cidr, expiresNoLaterThan }) =>
      create(OwnBanLiftSchema, { siteId, cidr, expiresNoLaterThanMs: BigInt(Math.round(expiresNoLaterThan + offset)) }),
    );
    return this.mark({ lifted });
  }

  /** Forgets what is over; writes the file anew when it is mostly history, not complete, or the clock was set. */
  async maintain(): Promise<void> {
    this.state.expire();
    if (this.journal.busy) return;
    const difference = this.clock.wall() - this.clock.monotonic();
    const isStepped = Math.abs(difference - this.wallMinusMonotonic) > CLOCK_STEP_MS;
    const isHistory = this.journal.bytes > Math.max(COMPACT_MIN_BYTES, 2 * this.baseBytes);
    if (!this.detached && !isStepped && !isHistory) return;
    this.wallMinusMonotonic = difference;
    await this.writeAnew();
  }

  async close(): Promise<void> {
    await this.journal.close();
  }

  private async writeAnew(): Promise<void> {
    const wasDetached = this.detached;
    // What changes from here on is appended and carried over.
    this.detached = false;
    try {
      await this.journal.rewrite(
        (draft) => this.produce(draft),
        () => {
          if (!this.detached) this.written = this.state.cursor;
          this.baseBytes = this.journal.bytes;
        },
      );
      if (!this.detached) this.diskProblem = '';
    } catch (error) {
      this.detached ||= wasDetached;
      this.noteProblem(error);
    }
  }

  /** The state as records that lead to it; called in the turn in which the rewrite begins. */
  private produce(draft: JournalDraft): Promise<void> {
    const { state } = this;
    const offset = this.clock.wall() - this.clock.monotonic();
    const base = { instanceId: state.cursor.instanceId, sequence: state.cursor.sequence };
    const waiting = new Set(state.waitingBans);
    const records: (() => Uint8Array)[] = [];
    const bans = (rows: readonly OwnBanRow[]) => rows.map((row) => writeOwnBan(row, offset));
    for (const rows of chunks(state.liveBans().filter((row) => !waiting.has(row)))) {
      records.push(() => securityRecord(create(SecurityBatchSchema, { ...base, bans: bans(rows) })));
      records.push(() => markRecord(create(SecurityMarkSchema, { reportedBans: BigInt(rows.length) })));
    }
    for (const rows of chunks(state.waitingBans))
      records.push(() => securityRecord(create(SecurityBatchSchema, { ...base, bans: bans(rows) })));
    for (const rows of chunks(state.waitingEvents)) {
      const events = rows.map(({ event, at }) => ({ ...event, occurredAtMs: BigInt(Math.round(at + offset)) }));
      records.push(() => securityRecord(create(SecurityBatchSchema, { ...base, events })));
    }
    for (const sites of chunks(state.sites()))
      records.push(() => securityRecord(create(SecurityBatchSchema, { ...base, sites: [...sites] })));
    records.push(() => securityRecord(create(SecurityBatchSchema, base)));
    return (async () => {
      for (const record of records) {
        draft.append(record());
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
  }

  private mark(init: Omit<Partial<SecurityMark>, '$typeName' | '$unknown'>): string[] {
    const mark = create(SecurityMarkSchema, init);
    const globalCidrs = this.state.takeMark(mark);
    this.append(markRecord(mark));
    return globalCidrs;
  }

  private append(record: Uint8Array): boolean {
    if (this.detached) return false;
    try {
      this.journal.append(record);
      return true;
    } catch (error) {
      this.detached = true;
      this.noteProblem(error);
      return false;
    }
  }

  private noteProblem(error: unknown): void {
    if (this.diskProblem === '') this.log.error('security journal not writable, serving from memory', { error });
    this.diskProblem = `own bans not on disk: ${errorText(error)}`;
  }

  private load(payload: Buffer): boolean {
    try {
      const { record } = fromBinary(JournalRecordSchema, payload);
      if (record.case === 'security') this.state.takeBatch(record.value);
      else if (record.case === 'securityMark') this.state.takeMark(record.value);
      else return false;
      return true;
    } catch (error) {
      this.log.error('unreadable record in security journal', { error });
      return false;
    }
  }
}

function* chunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < rows.length; from += ROWS_PER_RECORD) yield rows.slice(from, from + ROWS_PER_RECORD);
}

function securityRecord(value: SecurityBatch): Uint8Array {
  return toBinary(JournalRecordSchema, create(JournalRecordSchema, { record: { case: 'security', value } }));
}

function markRecord(value: SecurityMark): Uint8Array {
  return toBinary(JournalRecordSchema, create(JournalRecordSchema, { record: { case: 'securityMark', value } }));
}
