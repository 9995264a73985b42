import type { Log } from '../../kit/log.ts';

/** Runs `work` periodically until the signal aborts, never twice at a time. */
export function every(periodMs: number, name: string, work: () => Promise<void>, log: Log, signal: AbortSignal): void {
  let running = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    work()
      .catch((error) => log.error(`${name} failed`, { error }))
      .finally(() => {
        running = false;
      });
  }, periodMs);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}
