// Who is running: processes are told apart by id and start time, because ids are used again.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessMark {
  pid: number;
  /** Opaque: boot and start time. Equal only for the very same process. */
  started: string;
}

interface Stat {
  pid: number;
  state: string;
  group: number;
  startTicks: string;
}

function readStat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The command name is in parentheses and may hold spaces and parentheses itself.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { pid, state: fields[0] ?? '', group: Number(fields[2]), startTicks: fields[19] ?? '' };
}

let boot: string | undefined;

function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return boot;
}

/** Start mark of a running process, or undefined when there is none (a zombie counts as none). */
export function startedAt(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    const answer = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', timeout: 5000 });
    return answer.stdout?.trim() || undefined;
  }
  const stat = readStat(pid);
  if (!stat || stat.state === 'Z' || stat.state === 'X') return undefined;
  return `${bootId()}:${stat.startTicks}`;
}

export function markOf(pid: number): ProcessMark | undefined {
  const started = startedAt(pid);
  return started === undefined ? undefined : { pid, started };
}

export function isAlive(mark: ProcessMark): boolean {
  return startedAt(mark.pid) === mark.started;
}

/**
 * Processes of the group that `leader` led, also when the leader itself is gone. A group started before this boot or by
 * somebody who was given the same id later is not returned: members of our group cannot be older than its leader.
 */
export function groupMembers(leader: ProcessMark): number[] {
  if (process.platform !== 'linux') return isAlive(leader) ? [leader.pid] : [];
  const [markBoot, ticks] = leader.started.split(':');
  if (markBoot !== bootId()) return [];
  const leaderNow = readStat(leader.pid);
  if (leaderNow && leaderNow.startTicks !== ticks) return [];
  const members: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(Number(name));
    if (!stat || stat.group !== leader.pid || stat.state === 'Z') continue;
    if (BigInt(stat.startTicks) >= BigInt(ticks ?? '0')) members.push(stat.pid);
  }
  return members;
}

const TICKS_PER_SECOND = 100;

/** Seconds of processors that a process and the children it waited for have taken; undefined where nobody counts. */
export function processorSeconds(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const ticks = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15);
    return ticks.reduce((sum, each) => sum + Number(each), 0) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}
