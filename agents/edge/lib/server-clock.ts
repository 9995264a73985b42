// The console's clock as seen from here. A message's server time is never ahead of the true one by more than nothing and
// behind it by the time of travel, so the largest difference seen lately is the best estimate. Until the console says
// something, what a former process knew of it serves.
import { type Clock, machineClock } from './clock.ts';

const KEEP_MS = 5 * 60_000;
const MAX_SAMPLES = 64;

/** The console's time at some moment, Unix ms, and how far it was ahead of this machine's. */
export interface ClockReading {
  serverTimeMs: number;
  offsetMs: number;
}

export class ServerClock {
  private readonly clock: Clock;
  /** From a former process, as a difference to the monotonic clock of this one. */
  private readonly remembered: number | undefined;
  private samples: { at: number; serverMinusMonotonic: number }[] = [];

  constructor(clock: Clock = machineClock, remembered?: ClockReading) {
    this.clock = clock;
    if (!remembered) return;
    // Never before the time that was known, also where this machine's clock was set back since.
    const now = Math.max(clock.wall() + remembered.offsetMs, remembered.serverTimeMs);
    this.remembered = now - clock.monotonic();
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
    if (this.samples.length === 0 && fallbackServerTimeMs > 0n) return Number(fallbackServerTimeMs) - this.clock.wall();
    const difference = this.measured ?? this.remembered;
    return difference === undefined ? 0 : difference + this.clock.monotonic() - this.clock.wall();
  }

  /** What the next process may begin with; undefined while the console has said nothing to this one. */
  reading(): ClockReading | undefined {
    if (this.measured === undefined) return undefined;
    const serverTimeMs = Math.round(this.measured + this.clock.monotonic());
    return { serverTimeMs, offsetMs: serverTimeMs - Math.round(this.clock.wall()) };
  }

  private get measured(): number | undefined {
    if (this.samples.length === 0) return undefined;
    return Math.max(...this.samples.map((sample) => sample.serverMinusMonotonic));
  }
}
