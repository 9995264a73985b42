// One open stream: where it is, and whether its reader takes what it is sent.
import type { ServerResponse } from 'node:http';

/** What a watcher needs of a response. */
export type Sink = Pick<ServerResponse, 'write' | 'end' | 'destroy' | 'on' | 'destroyed'>;

export class Watcher {
  /** The cookie's secret. */
  readonly token: string;
  /** Everything up to here was told; null: nothing is asked for that happened before. */
  cursor: string | null;
  /** Whether its first line was sent. */
  started = false;
  /** Whether what leads to a cursor ahead of this process may still come. */
  patient = true;
  readonly #sink: Sink;
  /** performance.now() since when the reader takes nothing; null: it does. */
  #blockedSince: number | null = null;
  #ended = false;

  /** `onReady`: the reader takes lines again. */
  constructor(token: string, cursor: string | null, sink: Sink, onReady: () => void) {
    this.token = token;
    this.cursor = cursor;
    this.#sink = sink;
    sink.on('drain', () => {
      this.#blockedSince = null;
      onReady();
    });
  }

  /** Whether it takes a line now. */
  get ready(): boolean {
    return !this.#ended && this.#blockedSince === null && !this.#sink.destroyed;
  }

  /** Sends a line; call only while ready. What does not fit the connection is at most this line. */
  send(line: Buffer): void {
    if (!this.#sink.write(line)) this.#blockedSince = performance.now();
  }

  /** Whether its reader has taken nothing for so long. */
  stalled(ms: number): boolean {
    return this.#blockedSince !== null && performance.now() - this.#blockedSince > ms;
  }

  end(line: Buffer): void {
    if (this.#ended) return;
    this.#ended = true;
    // A reader that takes nothing would not take the end either.
    if (this.#blockedSince === null) this.#sink.end(line);
    else this.#sink.destroy();
  }

  drop(): void {
    this.#ended = true;
    this.#sink.destroy();
  }
}
