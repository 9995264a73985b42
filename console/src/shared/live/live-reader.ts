// Reads the stream of live updates and goes on where it was, for as long as somebody is signed in. Knows no page: it runs
// in the worker that all tabs share, or in one of them.
import type { LiveLine } from '@contract/resources/live.ts';
import { pauseBefore } from './backoff.ts';
import type { LiveMessage, LiveState } from './message.ts';

const ADDRESS = '/rpc/live/watch';
/** The console sends something every 15 s; after this the connection is dead. */
const SILENT_MS = 40_000;
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
    let watchdog = setTimeout(() => abort.abort(), SILENT_MS);
    try {
      const response = await fetch(ADDRESS, {
        method: 'POST',
        credentials: 'same-origin',
        cache: 'no-store',
        headers: { 'content-type': 'application/json', 'x-csrf-token': 'orpc' },
        body: JSON.stringify(this.#cursor === null ? { recentSeconds: RECENT_SECONDS } : { cursor: this.#cursor }),
        signal: abort.signal,
      });
      if (response.status === 401) return null;
      if (response.status === 429) return FULL_MS;
      if (!response.ok || !response.body) return pauseBefore(this.#attempt++);
      let rest = '';
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENT_MS);
        const lines = (rest + part.value).split('\n');
        rest = lines.pop() ?? '';
        for (const text of lines) {
          const line = JSON.parse(text) as LiveLine;
          // Of a session too: there may be another by now, and the next try is refused when there is none.
          if (line.type === 'end') return pauseBefore(0);
          this.#take(line);
        }
      }
      return pauseBefore(this.#attempt++);
    } finally {
      clearTimeout(watchdog);
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
