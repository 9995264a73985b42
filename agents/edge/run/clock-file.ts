// What the agent knew of the console's clock, for the next process: until that one reaches the console, minutes and ends of
// bans go on by it and not by a clock of this machine that may be wrong.
import { readTextIfPresent, writeFileAtomic } from '../../kit/files.ts';
import type { Log } from '../../kit/log.ts';
import type { ClockReading } from '../lib/server-clock.ts';

/** A difference this small is not worth a write. */
const CHANGE_MS = 100;
const REWRITE_MS = 10 * 60_000;

export class ClockFile {
  private readonly path: string;
  private readonly log: Log;
  private written: ClockReading | undefined;
  private failing = false;

  constructor(path: string, log: Log) {
    this.path = path;
    this.log = log;
  }

  /** What was written last; undefined when there is none that makes sense. Never throws. */
  read(): ClockReading | undefined {
    try {
      const text = readTextIfPresent(this.path);
      if (text === undefined) return undefined;
      const { serverTimeMs, offsetMs } = (JSON.parse(text) ?? {}) as Partial<ClockReading>;
      if (isMilliseconds(serverTimeMs) && serverTimeMs > 0 && isMilliseconds(offsetMs))
        return { serverTimeMs, offsetMs };
      this.log.warn('stored console clock is not plausible', { path: this.path });
    } catch (error) {
      // The console tells it again.
      this.log.warn('stored console clock not read', { path: this.path, error });
    }
    return undefined;
  }

  /** Writes what is known where it is another than what stands there, or much later. Never throws. */
  keep(reading: ClockReading | undefined): void {
    if (!reading) return;
    const { written } = this;
    const moved = written && Math.abs(reading.offsetMs - written.offsetMs) >= CHANGE_MS;
    if (written && !moved && reading.serverTimeMs - written.serverTimeMs < REWRITE_MS) return;
    try {
      writeFileAtomic(this.path, `${JSON.stringify(reading)}\n`);
      this.written = reading;
      this.failing = false;
    } catch (error) {
      if (!this.failing) this.log.warn('console clock not stored', { path: this.path, error });
      this.failing = true;
    }
  }
}

function isMilliseconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && Math.abs(value as number) < 1e14;
}
