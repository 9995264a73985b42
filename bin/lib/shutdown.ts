// Ends a launcher once, whatever the reason: a signal, the end of the process that started it, or a child that died.
import { constants } from 'node:os';
import { say } from './progress.ts';

const SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
// A terminal sends Ctrl-C to the whole group and npm hands it on as well: the same press arrives several times.
const SAME_PRESS_MS = 2000;

export interface Shutdown {
  /** Aborted when the stop begins. */
  readonly signal: AbortSignal;
  /** Begins the stop; the first call wins. */
  begin(reason: string, exitCode: number): void;
}

/**
 * Installs the handlers. `stop` runs once; afterwards the process exits, with 0 after a signal when ending on one is what
 * the launcher is for. A second Ctrl-C later ends it at once.
 */
export function installShutdown(
  stop: () => Promise<void>,
  options: { signalIsSuccess: boolean } = { signalIsSuccess: true },
): Shutdown {
  const abort = new AbortController();
  let since = 0;
  const begin = (reason: string, exitCode: number) => {
    if (since !== 0) return;
    since = Date.now();
    abort.abort(new Error(reason));
    say(`\n${reason}: stopping …`);
    stop().then(
      () => process.exit(exitCode),
      (error: unknown) => {
        say(String(error instanceof Error ? error.stack : error));
        process.exit(1);
      },
    );
  };
  for (const name of SIGNALS) {
    process.on(name, () => {
      const exitCode = 128 + constants.signals[name];
      if (since !== 0 && Date.now() - since > SAME_PRESS_MS) process.exit(exitCode);
      begin(name === 'SIGINT' ? 'interrupted' : name, options.signalIsSuccess ? 0 : exitCode);
    });
  }
  // A launcher killed with SIGKILL cannot hand anything on; its end is seen by the parent that changes.
  const parent = Number(process.env.SVC_LAUNCHER_PID);
  if (parent === process.ppid) {
    setInterval(() => {
      if (process.ppid !== parent) begin('the process that started this one has ended', 1);
    }, 500).unref();
  }
  // Output to a terminal that is gone must not end the stop half way.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return { signal: abort.signal, begin };
}
