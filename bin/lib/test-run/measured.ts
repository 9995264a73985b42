// Runs a program and measures the processor time of it and of everything it started.
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from '../commands.ts';
import { cacheDir, root } from '../root.ts';

/** The shell knows what its children took; they do not inherit the descriptor it tells it on. */
const SCRIPT = '"$@" 3>&-; code=$?; times >&3; exit $code';
const REAPER = join(root, 'bin', 'lib', 'test-run', 'measured.py');
const LIMIT_MS = 40 * 60_000;

export interface Measured {
  code: number;
  seconds: number;
  cpuSeconds: number;
}

export interface Program {
  command: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** File that receives both streams. */
  log: string;
  onText(text: string): void;
}

const running = new Set<ChildProcess>();
let ended = false;

/** Path of a log of test runs, in .cache/test-logs. */
export function logFile(name: string): string {
  const folder = join(cacheDir, 'test-logs');
  mkdirSync(folder, { recursive: true });
  return join(folder, `${name.replace(/[^\w.]+/g, '-')}.log`);
}

/** Runs it to its end, or for 40 minutes; its own process group, so that nothing of it is left then. */
export async function runMeasured(program: Program): Promise<Measured> {
  // The run is being stopped: nobody waits for what would begin now.
  if (ended) return new Promise(() => undefined);
  const started = performance.now();
  const { command, args, cwd, env } = program;
  const [measure = 'sh', ...options] = measuring();
  const child = spawn(measure, [...options, command, ...args], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  running.add(child);
  const timer = setTimeout(() => end(child, 'SIGKILL'), LIMIT_MS);
  const file = createWriteStream(program.log);
  let times = '';
  child.stdio[3]?.on('data', (chunk: Buffer) => {
    times += chunk.toString();
  });
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    file.write(text);
    program.onText(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => file.write(text));
  try {
    const code = await new Promise<number>((done, fail) => {
      child.on('error', fail);
      child.on('close', (status) => done(status ?? 1));
    });
    return { code, seconds: (performance.now() - started) / 1000, cpuSeconds: childSeconds(times) };
  } finally {
    clearTimeout(timer);
    running.delete(child);
    await new Promise<void>((done) => file.end(done));
  }
}

/** The command that runs another one and tells what it took; without Python or Linux it misses those left behind. */
function measuring(): string[] {
  const python = process.platform === 'linux' ? findCommand('python3') : undefined;
  return python ? [python, '-I', '-S', REAPER] : ['sh', '-c', SCRIPT, 'sh'];
}

/** Ends every program that still runs; what would begin later never does. */
export function endMeasured(): void {
  ended = true;
  for (const child of running) end(child, 'SIGTERM');
}

function end(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The second line of `times`: user and system time of all children, as 1m2.34s. */
export function childSeconds(times: string): number {
  const [, children = ''] = times.trim().split('\n');
  const parts = [...children.matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}
