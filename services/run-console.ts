// A console process: starts with the environment of the process, stops on SIGTERM, SIGINT or SIGHUP.
import { EnvError } from '../runtime/env.ts';
import { startConsole } from './start-console.ts';

/** After this the process ends, whatever is still open. */
const LONGEST_STOP_MS = 8_000;

try {
  const running = await startConsole(process.env);
  const { log } = running.runtime;
  let stopping = false;
  const stop = async (signal: NodeJS.Signals) => {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, 'console stopping');
    setTimeout(() => {
      log.error('console stops too slowly, exiting');
      process.exit(1);
    }, LONGEST_STOP_MS).unref();
    await running.stop();
    log.info('console stopped');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, stop);
} catch (error) {
  // Before and without a log: the reader is whoever typed the command.
  const lines = error instanceof EnvError ? error.message : describeFailure(error as Error);
  process.stderr.write(`the console did not start: ${lines}\n`);
  process.exit(1);
}

function describeFailure(error: Error): string {
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`;
}
