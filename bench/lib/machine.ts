// What a figure was measured on: without it the figure says nothing.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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

/** User and system CPU seconds a process used so far, children not counted; from /proc. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Resident memory of a process in MiB; from /proc. */
export function residentMiB(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return match ? Number(match[1]) / 1024 : Number.NaN;
}
