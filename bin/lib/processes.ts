// Child processes of a launcher. Each runs in its own process group and is written down before anything else happens, so
// that a launcher killed with SIGKILL leaves a list from which the next start stops what is left.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { groupMembers, markOf, type ProcessMark } from './process-table.ts';
import { say } from './progress.ts';

export interface ChildSpec {
  name: string;
  command: string;
  args: string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  /** File that receives stdout and stderr; without one they go where this process' go. */
  logFile?: string;
  /** First signal of a stop; SIGKILL follows after `graceMs`. */
  stopSignal?: NodeJS.Signals;
  graceMs?: number;
}

export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface Child {
  readonly name: string;
  /** Changes when the process was started again. */
  readonly pid: number;
  readonly logFile: string | undefined;
  /** Resolves when the process has ended and is not started again. */
  readonly ended: Promise<Ending>;
  running(): boolean;
  /** From now on it is started again when it ends by itself, a few times a minute at most. */
  keepRunning(): void;
  stop(): Promise<void>;
}

interface Written extends ProcessMark {
  name: string;
  stopSignal: NodeJS.Signals;
  graceMs: number;
}

const DEFAULT_GRACE_MS = 10_000;
const RESTART_DELAY_MS = 1000;
const RESTART_WINDOW_MS = 60_000;
const RESTARTS_IN_WINDOW = 5;

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function stopGroup(entry: Written): Promise<void> {
  const leads = () => markOf(entry.pid)?.started === entry.started;
  // Only the leader gets the polite signal at first: a supervisor stops its own children in its own order.
  if (leads()) process.kill(entry.pid, entry.stopSignal);
  let leftBehind = false;
  const deadline = Date.now() + entry.graceMs;
  while (groupMembers(entry).length > 0) {
    if (Date.now() > deadline) killGroup(entry.pid, 'SIGKILL');
    else if (!leftBehind && !leads()) {
      leftBehind = true;
      killGroup(entry.pid, 'SIGTERM');
    }
    await delay(20);
  }
}

/** Last lines of a log file, for an error message. */
export function tail(file: string | undefined, lines = 15): string {
  try {
    if (file === undefined) return '';
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}

export class Processes {
  readonly #file: string;
  readonly #children: Child[] = [];
  #closed = false;
  #written: Written[] = [];

  /** `file` is the list on disk; what an earlier launcher left there is stopped by `stopLeftovers`. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Stops what an earlier launcher left running; returns the names. */
  async stopLeftovers(): Promise<string[]> {
    let left: Written[];
    try {
      left = JSON.parse(readFileSync(this.#file, 'utf8')) as Written[];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && !(error instanceof SyntaxError)) throw error;
      return [];
    }
    const names: string[] = [];
    for (const entry of left.reverse()) {
      if (groupMembers(entry).length === 0) continue;
      names.push(entry.name);
      await stopGroup(entry);
    }
    rmSync(this.#file, { force: true });
    return names;
  }

  /** Starts a child. Throws once everything is being stopped. */
  start(spec: ChildSpec): Child {
    if (this.#closed) throw new Error(`${spec.name} is not started, because everything is being stopped`);
    let current = this.#spawn(spec);
    let stopping: Promise<void> | undefined;
    let kept = false;
    const recent: number[] = [];
    const watch = async (): Promise<Ending> => {
      for (;;) {
        const ending = await current.ended;
        this.#forget(current.entry);
        if (stopping || !kept) return ending;
        const now = Date.now();
        recent.push(now);
        while ((recent[0] ?? now) < now - RESTART_WINDOW_MS) recent.shift();
        if (recent.length > RESTARTS_IN_WINDOW) return ending;
        say(`${spec.name} ended (${ending.signal ?? `exit code ${ending.code}`}), restarting it`);
        await delay(RESTART_DELAY_MS);
        // The group may have members left that hold ports or files of the one that ended.
        if (current.entry) await stopGroup(current.entry);
        if (stopping) return ending;
        current = this.#spawn(spec);
      }
    };
    let over = false;
    const ended = watch().finally(() => {
      over = true;
    });
    const child: Child = {
      name: spec.name,
      logFile: spec.logFile,
      ended,
      get pid() {
        return current.pid;
      },
      running: () => !over,
      keepRunning: () => {
        kept = true;
      },
      stop: () => {
        stopping ??= (async () => {
          if (current.entry) await stopGroup(current.entry);
          this.#forget(current.entry);
          // Gone from the table of processes is a moment before this process hears of it.
          await ended;
        })();
        return stopping;
      },
    };
    this.#children.push(child);
    return child;
  }

  #spawn(spec: ChildSpec): { pid: number; entry: Written | undefined; ended: Promise<Ending> } {
    const log = spec.logFile === undefined ? 'inherit' : openSync(spec.logFile, 'a', 0o600);
    const options: SpawnOptions = { stdio: ['ignore', log, log], detached: true, env: spec.env ?? process.env };
    if (spec.cwd !== undefined) options.cwd = spec.cwd;
    if (spec.uid !== undefined) options.uid = spec.uid;
    if (spec.gid !== undefined) options.gid = spec.gid;
    let child: ChildProcess;
    try {
      child = spawn(spec.command, spec.args, options);
    } finally {
      if (typeof log === 'number') closeSync(log);
    }
    const ended = new Promise<Ending>((done) => {
      child.on('exit', (code, signal) => done({ code, signal }));
      child.on('error', (error) => {
        say(`cannot run ${spec.name} (${spec.command}): ${error.message}`);
        done({ code: 127, signal: null });
      });
    });
    const pid = child.pid;
    const mark = pid === undefined ? undefined : markOf(pid);
    if (!mark) return { pid: pid ?? -1, entry: undefined, ended };
    const { name, stopSignal = 'SIGTERM', graceMs = DEFAULT_GRACE_MS } = spec;
    const entry: Written = { ...mark, name, stopSignal, graceMs };
    this.#written.push(entry);
    this.#write();
    return { pid: mark.pid, entry, ended };
  }

  #forget(entry: Written | undefined): void {
    if (entry && groupMembers(entry).length > 0) return;
    this.#written = this.#written.filter((other) => other !== entry);
    this.#write();
  }

  /** Stops every child, the last started first. */
  async stopAll(): Promise<void> {
    this.#closed = true;
    for (const child of [...this.#children].reverse()) await child.stop();
  }

  #write(): void {
    if (this.#written.length === 0) {
      rmSync(this.#file, { force: true });
      return;
    }
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.#written, null, 1), { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
  }
}
