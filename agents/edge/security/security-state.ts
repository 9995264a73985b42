// What the data plane told about attacks, as a fold over records: own bans, levels above normal, and what the console has
// not heard yet. The same records always lead to the same state, so that the journal can be read back.
import type {
  PathLevelState,
  SecurityBatch,
  SecurityMark,
  SiteLevelState,
} from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { SecurityEvent } from '../../../proto/gen/svc/node/v1/security_pb.js';
import { canonicalCidr } from '../bans/cidr.ts';
import type { Clock } from '../lib/clock.ts';
import { type OwnBanRow, ownBanKey, readOwnBan } from './own-ban.ts';

/** Unreported bans and events kept of each. */
export const MAX_WAITING = 10_000;
/** A lifted own ban may have been stamped by a clock that differs a little. */
const LIFT_SLACK_MS = 1000;

export interface WaitingEvent {
  event: SecurityEvent;
  /** On the monotonic clock. */
  at: number;
}

/** Which process sent the last batch, and its number. */
export interface SecurityCursor {
  instanceId: string;
  sequence: bigint;
}

/** A lift with its time on the monotonic clock. */
export interface Lift {
  siteId: string;
  cidr: string;
  expiresNoLaterThan: number;
}

export class SecurityState {
  private readonly clock: Clock;
  private readonly capacity: number;
  private readonly own = new Map<string, OwnBanRow>();
  private readonly levels = new Map<string, SiteLevelState>();
  private readonly lost = { before: 0n, now: 0n, here: 0n };
  readonly waitingBans: OwnBanRow[] = [];
  readonly waitingEvents: WaitingEvent[] = [];
  cursor: SecurityCursor = { instanceId: '', sequence: 0n };
  /** Grows with each change of a level. */
  levelChanges = 0;
  malformed = 0;

  constructor(clock: Clock, capacity: number) {
    this.clock = clock;
    this.capacity = capacity;
  }

  /** Events lost for want of room since this process started to count. */
  get dropped(): bigint {
    return this.lost.before + this.lost.now + this.lost.here;
  }

  /** Own bans in force, oldest first. */
  liveBans(): OwnBanRow[] {
    const now = this.clock.monotonic();
    return [...this.own.values()].filter((row) => row.expiresAt > now);
  }

  /** Sites above normal or with escalated paths. */
  sites(): SiteLevelState[] {
    return [...this.levels.values()];
  }

  /** Remaining ms of the own global ban of a CIDR; undefined when there is none. */
  globalRemainingMs(cidr: string): number | undefined {
    const row = this.own.get(ownBanKey('', cidr));
    const remaining = row ? row.expiresAt - this.clock.monotonic() : 0;
    return remaining > 0 ? remaining : undefined;
  }

  /** Whether the batch was taken over before. */
  knows(batch: SecurityBatch): boolean {
    return batch.instanceId === this.cursor.instanceId && batch.sequence <= this.cursor.sequence;
  }

  /** Takes a batch over; returns the CIDRs of its global bans. */
  takeBatch(batch: SecurityBatch): string[] {
    const { instanceId, sequence } = batch;
    if (instanceId !== this.cursor.instanceId) {
      this.lost.before += this.lost.now;
      this.lost.now = 0n;
    }
    this.cursor = { instanceId, sequence };
    if (batch.dropped > this.lost.now) this.lost.now = batch.dropped;
    const globalCidrs: string[] = [];
    for (const ban of batch.bans) {
      const row = readOwnBan(ban, this.clock);
      if (!row) {
        this.malformed++;
        continue;
      }
      this.put(row);
      this.waitingBans.push(row);
      if (row.siteId === '') globalCidrs.push(row.cidr);
    }
    const offset = this.clock.monotonic() - this.clock.wall();
    for (const event of batch.events) this.waitingEvents.push({ event, at: Number(event.occurredAtMs) + offset });
    this.waitingBans.splice(0, this.waitingBans.length - MAX_WAITING);
    this.lost.here += BigInt(this.waitingEvents.splice(0, this.waitingEvents.length - MAX_WAITING).length);
    for (const site of batch.sites) this.takeLevel(site);
    return globalCidrs;
  }

  /** Takes over what was reported and lifted; returns the CIDRs of lifted global bans. */
  takeMark(mark: SecurityMark): string[] {
    this.waitingBans.splice(0, Number(mark.reportedBans));
    this.waitingEvents.splice(0, Number(mark.reportedEvents));
    const offset = this.clock.monotonic() - this.clock.wall();
    return mark.lifted.flatMap(({ siteId, cidr, expiresNoLaterThanMs }) => {
      const lift = { siteId, cidr, expiresNoLaterThan: Number(expiresNoLaterThanMs) + offset };
      return this.lift(lift) && siteId === '' ? [lift.cidr] : [];
    });
  }

  /** Whether an own ban would end by this lift. */
  hasBanOf(lift: Lift): boolean {
    const row = this.own.get(ownBanKey(lift.siteId, canonicalCidr(lift.cidr)));
    return row !== undefined && ends(row, lift);
  }

  private lift(lift: Lift): boolean {
    const key = ownBanKey(lift.siteId, canonicalCidr(lift.cidr));
    const row = this.own.get(key);
    if (!row || !ends(row, lift)) return false;
    this.own.delete(key);
    for (let index = this.waitingBans.length - 1; index >= 0; index--) {
      const waiting = this.waitingBans[index]!;
      if (ownBanKey(waiting.siteId, waiting.cidr) === key && ends(waiting, lift)) this.waitingBans.splice(index, 1);
    }
    return true;
  }

  /** Forgets bans that are over. */
  expire(): void {
    const now = this.clock.monotonic();
    for (const [key, row] of this.own) if (row.expiresAt <= now) this.own.delete(key);
  }

  private put(row: OwnBanRow): void {
    const key = ownBanKey(row.siteId, row.cidr);
    const before = this.own.get(key);
    // In the order of writing: what is given up for room is the oldest.
    this.own.delete(key);
    this.own.set(key, before && before.expiresAt > row.expiresAt ? before : row);
    if (this.own.size > this.capacity) this.own.delete(this.own.keys().next().value!);
  }

  private takeLevel(site: SiteLevelState): void {
    this.levelChanges++;
    if (isCalm(site)) this.levels.delete(site.siteId);
    else this.levels.set(site.siteId, site);
  }
}

function ends(row: OwnBanRow, lift: Lift): boolean {
  return row.expiresAt <= lift.expiresNoLaterThan + LIFT_SLACK_MS;
}

/** Back to normal, with no path escalated. */
function isCalm({ site, paths }: SiteLevelState): boolean {
  return (site?.level ?? 0) === 0 && paths.every((path: PathLevelState) => (path.state?.level ?? 0) === 0);
}
