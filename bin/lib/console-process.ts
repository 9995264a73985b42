// The console as a child process of a launcher.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { migrate } from '../../migrations/run.ts';
import { type Child, type ChildSpec, type Processes, tail } from './processes.ts';
import { during, Refusal } from './progress.ts';
import { root } from './root.ts';

const START_TIMEOUT_MS = 120_000;

/** Brings the schema up to date, telling each migration. */
export async function migrateWithProgress(databaseUrl: string): Promise<void> {
  await during('database schema', async (current) => {
    await migrate(databaseUrl, ({ name, index, total }) => current.detail(`${name}, ${index} of ${total}`));
  });
}

/** Starts the console and waits until its health check answers at `localUrl`. */
export async function startConsoleProcess(
  processes: Processes,
  env: NodeJS.ProcessEnv,
  localUrl: string,
  options: Pick<ChildSpec, 'logFile'>,
): Promise<Child> {
  return during('console', async () => {
    const child = processes.start({
      name: 'console',
      command: process.execPath,
      args: [join(root, 'bin', 'console.ts')],
      cwd: root,
      env,
      graceMs: 20_000,
      ...options,
    });
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await answers(localUrl))) {
      if (!child.running()) throw new Refusal(`the console did not start\n${tail(child.logFile)}`.trimEnd());
      if (Date.now() > deadline) throw new Refusal(`the console does not respond\n${tail(child.logFile)}`.trimEnd());
      await delay(50);
    }
    child.keepRunning();
    return child;
  });
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
