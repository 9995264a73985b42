// Reads the stream of live updates and goes on where it was, for as long as somebody is signed in. Knows no page: it runs
// in the worker that all tabs share, or in one of them.
import type { LiveLine } from '@contract/resources/live.ts';
import { pauseBefore } from './backoff.ts';
import type { LiveMessage, LiveState } from './message.ts';
import { readStream } from './read-stream.ts';

const ADDRESS = '/rpc/live/watch';
/** Pages read before the stream has begun: what happened since then is told as well. */
const RECENT_SECONDS = 5;
/** The console is full: another tab or browser may leave. */
const FULL_MS = 30_000;

export class LiveReader {
  readonly #tell: (message: LiveMessage) => void;
  #cursor: string | null;
  #state: LiveState = 'off';
  /** The loop under way; one that was stopped may still be ending when the next has begun. */
  #run: object | null = null;
  #attempt = 0;
  #abort: AbortController | null = null;
  #wake: (() => void) | null = null;

  /** `cursor`: where another reader was. */
  constructor(tell: (message: LiveMessage) => void, cursor: string | null = null) {
    this.#tell = tell;
    this.#cursor = cursor;
  }

  get state(): LiveState {
    return this.#state;
  }

  /** Begins to read, or tries again at once while it waits. */
  start(): void {
    this.#attempt = 0;
    this.#wake?.();
    if (this.#run) return;
    const run = {};
    this.#run = run;
    void this.#loop(run);
  }

  stop(): void {
    this.#run = null;
    this.#abort?.abort();
    this.#wake?.();
    this.#become('off');
  }

  async #loop(run: object): Promise<void> {
    while (this.#run === run) {
      this.#become('connecting');
      const pause = await this.#read().catch(() => pauseBefore(this.#attempt++));
      if (this.#run !== run) return;
      if (pause === null) {
        this.stop();
        return;
      }
      this.#become('connecting');
      await this.#sleep(pause);
    }
  }

  /** Reads until the stream ends; answers the pause before the next, or null when nobody is signed in. */
  async #read(): Promise<number | null> {
    const abort = new AbortController();
    this.#abort = abort;
    let ended = false;
    try {
      const input = this.#cursor === null ? { recentSeconds: RECENT_SECONDS } : { cursor: this.#cursor };
      const take = (line: LiveLine): boolean => {
        // Of a session too: there may be another by now, and the next try is refused when there is none.
        ended = line.type === 'end';
        if (line.type !== 'end') this.#take(line);
        return !ended;
      };
      const response = await readStream(ADDRESS, input, { abort, take: (line) => take(line as LiveLine) });
      if (response.status === 401) return null;
      if (response.status === 429) return FULL_MS;
      return pauseBefore(ended ? 0 : this.#attempt++);
    } finally {
      abort.abort();
    }
  }

  #take(line: Exclude<LiveLine, { type: 'end' }>): void {
    if (line.type === 'ping') return;
    if (line.type === 'pause') {
      this.#become('connecting');
      return;
    }
    this.#attempt = 0;
    this.#cursor = line.cursor;
    this.#become('live');
    if (line.type === 'reset') this.#tell({ kind: 'reset', cursor: line.cursor });
    if (line.type === 'events') this.#tell({ kind: 'events', events: line.events, cursor: line.cursor });
  }

  #become(state: LiveState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#tell({ kind: 'state', state });
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = done;
    });
  }
}
