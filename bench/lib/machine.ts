// What a figure was measured on: without it the figure says nothing.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';

export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  kernel: string;
  node: string;
  versions: Record<string, string>;
  commit: string;
  at: string;
}

/** Describes this machine and the versions of the given programs (name -> command whose first output line is shown). */
export function describeMachine(programs: Record<string, readonly string[]> = {}): Machine {
  const versions = Object.fromEntries(
    Object.entries(programs).map(([name, command]) => [name, firstLine(command[0]!, command.slice(1))]),
  );
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    node: process.version,
    versions,
    commit: firstLine('git', ['rev-parse', '--short', 'HEAD']),
    at: new Date().toISOString(),
  };
}

/** First line a program prints, on whichever stream and with whichever exit code: nginx and wrk print versions oddly. */
function firstLine(program: string, args: readonly string[]): string {
  const { stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', timeout: 10_000 });
  if (error) return 'not found';
  return `${stdout}${stderr}`.split('\n').find((line) => line.trim() !== '') ?? '';
}

/** Fields of /proc/PID/stat from the state on. */
function statFields(pid: number | string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** User and system CPU seconds a process used so far, children not counted; from /proc. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid);
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** As {@link cpuSeconds}, to the nanosecond, of threads that live: for programs whose threads stay. */
export function threadSeconds(pid: number): number {
  const nanos = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]),
  );
  return nanos.reduce((sum, each) => sum + each, 0) / 1e9;
}

/** As {@link cpuSeconds}, with the children that live and those that ended. */
export function familyCpuSeconds(pid: number): number {
  const own = statFields(pid);
  let seconds = cpuSeconds(pid) + (Number(own[13]) + Number(own[14])) / 100;
  for (const name of readdirSync('/proc').filter((entry) => /^[0-9]+$/.test(entry))) {
    try {
      if (statFields(name)[1] === String(pid)) seconds += cpuSeconds(Number(name));
    } catch {
      // It ended meanwhile, and is counted with its parent from now on.
    }
  }
  return seconds;
}

/** Resident memory of a process in MiB; from /proc. */
export const residentMiB = (pid: number): number => memoryMiB(pid, 'VmRSS');

/** As {@link residentMiB}, the most that it ever was. */
export const peakMiB = (pid: number): number => memoryMiB(pid, 'VmHWM');

function memoryMiB(pid: number, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return match ? Number(match[1]) / 1024 : Number.NaN;
}
