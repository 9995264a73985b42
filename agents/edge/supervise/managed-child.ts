// A child process that is kept running.
//
//   state     trigger                     next      also
//   running   exit                        waiting   none at the first death in a minute, then the shortest delay, doubled
//                                                   at each; from the start again after a minute of life
//   running   exit with a final code      ended     the owner is told
//   waiting   delay over                  running
//   any       without                     paused    ended in order; started again when the work is done
//   any       stop                        stopped   SIGTERM, SIGKILL for the whole group when the grace is over
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { sleep } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { markOf, type ProcessMark } from '../../kit/process-info.ts';
import { LifeLine } from './life-line.ts';

const LONG_LIFE_MS = 60_000;

export interface ManagedChildOptions {
  name: string;
  command: string;
  args: readonly string[];
  env: Record<string, string | undefined>;
  /** What each process reads from its standard input; nothing when absent. */
  input?: string;
  /** Opens an IPC channel by which the child notices that its parent is gone. */
  ipc: boolean;
  minDelayMs: number;
  maxDelayMs: number;
  graceMs: number;
  /** Exit code that ends the supervision. */
  finalCode?: number;
  log: Log;
  /** A process was started or is gone. What it throws is logged and ends nothing. */
  changed: () => void;
  /** Looks after the processes: the child gives signs of life over the descriptor that SVC_LIFE_FD names. */
  guard?: ChildGuard;
}

export interface ChildGuard {
  started(pid: number, line: LifeLine): void;
  /** The process is gone. */
  gone(): void;
  /** It was not told to go; the next one is started when this resolves. Never rejects. */
  ended(end: ChildEnd): Promise<void>;
}

export interface ChildEnd {
  code?: number;
  signal?: string;
  problem?: string;
}

export class ManagedChild {
  private readonly options: ManagedChildOptions;
  private readonly stopping = new AbortController();
  private child: ChildProcess | undefined;
  private running: Promise<number | undefined> | undefined;
  private paused: Promise<void> | undefined;
  /** The living process. */
  mark: ProcessMark | undefined;

  constructor(options: ManagedChildOptions) {
    this.options = options;
  }

  /** Starts the child; resolves with its final code when it gave one, with undefined after `stop`. */
  start(): Promise<number | undefined> {
    this.running ??= this.keepRunning();
    return this.running;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.end();
    await this.running;
  }

  /** Ends the process, does `work` while there is none, and starts it again. */
  async without(work: () => void): Promise<void> {
    let release = (): void => undefined;
    this.paused = new Promise((resolve) => {
      release = resolve;
    });
    try {
      await this.end();
      work();
    } finally {
      this.paused = undefined;
      release();
    }
  }

  /** Ends the living process, if there is one; resolves when it is gone. */
  private async end(): Promise<void> {
    const { child } = this;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const timer = setTimeout(() => {
      this.options.log.warn('child process did not stop in time, supervisor kills it', { child: this.options.name });
      killGroup(child.pid!);
    }, this.options.graceMs);
    await gone;
    clearTimeout(timer);
  }

  private async keepRunning(): Promise<number | undefined> {
    const { name, log, minDelayMs, maxDelayMs, finalCode } = this.options;
    for (let delayMs = 0; !this.stopping.signal.aborted; ) {
      if (this.paused) {
        await this.paused;
        continue;
      }
      const startedAt = performance.now();
      const end = await this.runOnce();
      if (this.stopping.signal.aborted) return undefined;
      if (this.paused) continue;
      await this.options.guard?.ended(end);
      if (finalCode !== undefined && end.code === finalCode) return finalCode;
      if (performance.now() - startedAt >= LONG_LIFE_MS) delayMs = 0;
      log.error('child process ended, supervisor restarts it', { child: name, ...end, inMs: delayMs });
      // Who is dead serves nobody: the first time there is nothing to wait for.
      if (delayMs > 0) await sleep(delayMs, this.stopping.signal);
      delayMs = Math.min(Math.max(delayMs * 2, minDelayMs), maxDelayMs);
    }
    return undefined;
  }

  private runOnce(): Promise<ChildEnd> {
    const { name, command, args, env, input, ipc, log, guard } = this.options;
    return new Promise((resolve) => {
      const stdio: ('ignore' | 'inherit' | 'ipc' | 'pipe')[] = [
        input === undefined ? 'ignore' : 'pipe',
        'inherit',
        'inherit',
      ];
      if (ipc) stdio.push('ipc');
      const lifeFd = stdio.length;
      if (guard) stdio.push('pipe');
      let child: ChildProcess;
      try {
        child = spawn(command, [...args], {
          env: guard ? { ...env, SVC_LIFE_FD: String(lifeFd) } : env,
          // Its own group: a terminal's Ctrl-C reaches only the supervisor, which stops its children in order.
          detached: true,
          stdio,
        });
      } catch (error) {
        // Such as a machine short of memory, or a program that is being written; most other failures are events.
        resolve({ problem: errorText(error) });
        return;
      }
      // One that ends before it has read everything says why by its exit.
      child.stdin?.on('error', () => undefined).end(input);
      this.child = child;
      // Without descriptors to spare there are no streams at all.
      const lifeStream = guard && (child.stdio?.[lifeFd] as Readable | null | undefined);
      if (guard && lifeStream && child.pid !== undefined)
        guard.started(child.pid, new LifeLine(lifeStream, (text) => process.stderr.write(text)));
      if (child.pid !== undefined) {
        this.mark = markOf(child.pid);
        log.info('child process started', { child: name, pid: child.pid });
        this.tellChanged();
      }
      child.once('error', (error) => resolve({ problem: error.message }));
      child.once('exit', (code, signal) => {
        this.mark = undefined;
        guard?.gone();
        this.tellChanged();
        resolve({ ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) });
      });
    });
  }

  private tellChanged(): void {
    try {
      this.options.changed();
    } catch (error) {
      this.options.log.error('change of a child process not recorded', { child: this.options.name, error });
    }
  }
}

/** Kills a process group led by `pid`; one that is gone is fine. */
export function killGroup(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: already gone.
  }
}
