// One launcher per data folder. The lock names the process that holds it by id and start time, so a lock left by a killed
// launcher, or by one before a reboot, is recognised as left over.
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive, markOf, type ProcessMark } from './process-table.ts';
import { Refusal, say } from './progress.ts';

export interface Lock {
  /** Tells a start that waits for this lock that it is worth waiting. */
  stopping(): void;
  release(): void;
}

interface Held extends ProcessMark {
  stopping?: boolean;
}

const WAIT_FOR_EXIT_MS = 3000;
const WAIT_WHILE_STOPPING_MS = 40_000;

function read(file: string): Held | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Held;
  } catch {
    return undefined;
  }
}

/** Whether a running process holds the lock. */
export function isLocked(file: string): boolean {
  const holder = read(file);
  return holder !== undefined && isAlive(holder);
}

function tryTake(file: string, mine: Held): boolean {
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify(mine), { mode: 0o600 });
  try {
    // link() is atomic and fails when the name exists; the file is complete from its first moment on.
    linkSync(temporary, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    rmSync(temporary, { force: true });
  }
}

export interface LockOptions {
  /** How long a holder that does not say it is stopping is waited for. */
  waitMs?: number;
  /** Says once what is waited for. */
  waiting?: (pid: number) => void;
}

/** Takes the lock, waiting for a holder that is just stopping. Throws a Refusal when another process goes on using it. */
export async function takeLock(file: string, what: string, options: LockOptions = {}): Promise<Lock> {
  const { waitMs = WAIT_FOR_EXIT_MS, waiting } = options;
  const mine = markOf(process.pid);
  if (!mine) throw new Error('this process has no start time');
  const since = Date.now();
  for (let told = false; ; ) {
    if (tryTake(file, mine)) break;
    const holder = read(file);
    if (!holder || !isAlive(holder)) {
      // Removed only while it still names the dead holder; whoever links first afterwards has it.
      if (read(file)?.pid === holder?.pid) rmSync(file, { force: true });
      continue;
    }
    const waited = Date.now() - since;
    if (waited > (holder.stopping ? WAIT_WHILE_STOPPING_MS : waitMs)) {
      throw new Refusal(`${what} is already running as process ${holder.pid}. Stop it first:\n  kill ${holder.pid}`);
    }
    if (!told && (waiting || holder.stopping)) {
      if (waiting) waiting(holder.pid);
      else say(`waiting for process ${holder.pid}, which is stopping …`);
      told = true;
    }
    await delay(100);
  }
  return {
    stopping: () => writeFileSync(file, JSON.stringify({ ...mine, stopping: true }), { mode: 0o600 }),
    release: () => {
      if (read(file)?.pid === process.pid) rmSync(file, { force: true });
    },
  };
}
