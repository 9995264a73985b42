// The console's clock as seen from here. A message's server time is never ahead of the true one by more than nothing and
// behind it by the time of travel, so the largest difference seen lately is the best estimate.
import { type Clock, machineClock } from '../bans/ban-store.ts';

const KEEP_MS = 5 * 60_000;
const MAX_SAMPLES = 64;

export class ServerClock {
  private readonly clock: Clock;
  private samples: { at: number; serverMinusMonotonic: number }[] = [];

  constructor(clock: Clock = machineClock) {
    this.clock = clock;
  }

  /** Notes a server time that was just received, Unix ms. */
  observe(serverTimeMs: bigint): void {
    if (serverTimeMs <= 0n) return;
    const at = this.clock.monotonic();
    this.samples = this.samples.filter((sample) => at - sample.at <= KEEP_MS).slice(-MAX_SAMPLES + 1);
    this.samples.push({ at, serverMinusMonotonic: Number(serverTimeMs) - at });
  }

  /** The console's clock minus this machine's wall clock in ms; `fallbackServerTimeMs` serves before any message. */
  offsetMs(fallbackServerTimeMs = 0n): number {
    if (this.samples.length === 0) {
      return fallbackServerTimeMs > 0n ? Number(fallbackServerTimeMs) - this.clock.wall() : 0;
    }
    const best = Math.max(...this.samples.map((sample) => sample.serverMinusMonotonic));
    return best + this.clock.monotonic() - this.clock.wall();
  }
}
