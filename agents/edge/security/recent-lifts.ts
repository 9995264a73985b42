// Lifts of the last moments: an own ban that was on its way from Caddy when it was lifted arrives after the lift.
import type { OwnBan } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { Clock } from '../lib/clock.ts';
import { ownBanKey, readOwnBan } from './own-ban.ts';
import type { Lift } from './security-state.ts';

const KEEP_MS = 30_000;
const MAX_KEPT = 10_000;

export class RecentLifts {
  private readonly clock: Clock;
  private kept: { lift: Lift; at: number }[] = [];

  constructor(clock: Clock) {
    this.clock = clock;
  }

  add(lifts: readonly Lift[]): void {
    const at = this.clock.monotonic();
    this.kept = [
      ...this.kept.filter((known) => at - known.at <= KEEP_MS),
      ...lifts.map((lift) => ({ lift, at })),
    ].slice(-MAX_KEPT);
  }

  /** Lifts that came after these bans were made. */
  meant(bans: readonly OwnBan[]): Lift[] {
    if (this.kept.length === 0) return [];
    return bans.flatMap((ban) => {
      const row = readOwnBan(ban, this.clock);
      if (!row) return [];
      const key = ownBanKey(row.siteId, row.cidr);
      return this.kept
        .filter(({ lift, at }) => row.createdAt <= at && ownBanKey(lift.siteId, lift.cidr) === key)
        .map(({ lift }) => lift);
    });
  }
}
