// What Caddy tells its parent over an inherited descriptor (agents/caddy/internal/lifesign): a byte each second, one for each
// step, and between them what Go's runtime prints when the process dies. Text is passed on up to a limit: a dump of a hundred
// thousand goroutines is no log.
import type { Readable } from 'node:stream';

const ALIVE = 1;
const STEPS: ReadonlyMap<number, Step> = new Map([
  [2, 'reading config'],
  [3, 'reading bans'],
  [4, 'ready'],
  [5, 'restoring'],
]);
const LAST_CODE = 5;
const MAX_TEXT_BYTES = 256 * 1024;
const OUT_OF_MEMORY = /out of memory|cannot allocate memory/;

/** How far a process has come. */
export type Step = 'starting' | 'reading config' | 'reading bans' | 'restoring' | 'ready';

export class LifeLine {
  private readonly write: (text: string) => void;
  private textBytes = 0;
  private beats = 0;
  step: Step = 'starting';
  /** The runtime said that it could not get memory. */
  ranOutOfMemory = false;
  /** Resolves when the process closed its end, at the latest when it died. */
  readonly closed: Promise<void>;

  /** `write` gets what the process printed when it died, at most 256 KiB. */
  constructor(stream: Readable, write: (text: string) => void) {
    this.write = write;
    stream.on('data', (chunk: Buffer) => this.take(chunk));
    // A reset is an end like any other.
    stream.on('error', () => undefined);
    this.closed = new Promise((resolve) => stream.once('close', () => resolve()));
  }

  /** Grows with every sign of life; 0 until the first. */
  get signs(): number {
    return this.beats;
  }

  private take(chunk: Buffer): void {
    const text: number[] = [];
    for (const byte of chunk) {
      if (byte === ALIVE) this.beats++;
      else if (byte <= LAST_CODE) this.step = STEPS.get(byte) ?? this.step;
      else text.push(byte);
    }
    if (text.length > 0) this.say(Buffer.from(text));
  }

  private say(text: Buffer): void {
    if (OUT_OF_MEMORY.test(text.toString('latin1'))) this.ranOutOfMemory = true;
    const left = MAX_TEXT_BYTES - this.textBytes;
    if (left <= 0) return;
    this.textBytes += text.length;
    this.write(text.subarray(0, left).toString('utf8'));
    if (text.length >= left) this.write('\n… the rest is omitted\n');
  }
}
