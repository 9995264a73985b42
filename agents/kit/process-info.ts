// Which process is meant: a pid alone may be reused, a pid with its start time is not.
import { readFileSync } from 'node:fs';

export interface ProcessMark {
  pid: number;
  /** Start time in clock ticks since boot, from /proc. */
  startTime: string;
}

/** Start time of a living process, or undefined. A zombie counts as dead. */
export function startTimeOf(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the command in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
}

/** The mark of a living process; undefined when it is gone. */
export function markOf(pid: number): ProcessMark | undefined {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? undefined : { pid, startTime };
}

/** Whether exactly this process is still alive. */
export function isAlive(mark: ProcessMark): boolean {
  return startTimeOf(mark.pid) === mark.startTime;
}
