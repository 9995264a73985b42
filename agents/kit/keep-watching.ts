// Keeps a server stream open: reconnects with jittered back-off, and when nothing was heard for too long. A stream that ends
// soon after its first event counts as a failure like one that never opened: what it said may be what ended it.
import { backoffDelay, sleep } from './backoff.ts';
import { errorText, type Log } from './log.ts';

export const SILENCE_MS = 45_000;
const STEADY_MS = 10_000;

export interface WatchOptions<Event> {
  log: Log;
  open: (signal: AbortSignal) => AsyncIterable<Event>;
  onEvent: (event: Event) => void;
  /** The first event of a connection arrived. */
  connected: () => void;
  /** The connection is over; called before the next is opened. */
  disconnected: (problem: string) => void;
  signal: AbortSignal;
  silenceMs?: number;
  /** How long a stream has to last, from its first event on, before earlier failures are forgotten. */
  steadyMs?: number;
  /** Delay before a reconnect in ms; default: 1 s doubling to 30 s with jitter. */
  delay?: (failures: number) => number;
}

/** Runs until the signal aborts; never rejects. */
export async function keepWatching<Event>(options: WatchOptions<Event>): Promise<void> {
  const { log, signal, silenceMs = SILENCE_MS, steadyMs = STEADY_MS, delay = backoffDelay } = options;
  for (let failures = 0; !signal.aborted; failures++) {
    const attempt = new AbortController();
    const end = (): void => attempt.abort();
    signal.addEventListener('abort', end, { once: true });
    let silent = false;
    const silence = setTimeout(() => {
      silent = true;
      attempt.abort();
    }, silenceMs);
    let problem = 'the console ended the stream';
    let firstAt: number | undefined;
    try {
      for await (const event of options.open(attempt.signal)) {
        silence.refresh();
        if (firstAt === undefined) {
          firstAt = performance.now();
          options.connected();
        }
        options.onEvent(event);
      }
    } catch (error) {
      problem = silent ? `no message for ${silenceMs} ms` : errorText(error);
    } finally {
      clearTimeout(silence);
      signal.removeEventListener('abort', end);
      attempt.abort();
    }
    if (signal.aborted) return;
    if (firstAt !== undefined && performance.now() - firstAt >= steadyMs) failures = 0;
    const retryInMs = delay(failures);
    log.warn('watch stream ended', { problem, retryInMs });
    options.disconnected(problem);
    await sleep(retryInMs, signal);
  }
}
