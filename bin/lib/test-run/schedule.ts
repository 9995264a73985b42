// Which jobs of a test run run beside each other. Those that compute share the cores; beside them, in a lane of their own,
// run those that mostly sleep or wait for another program, so that no core is idle while somebody waits.
import type { Cost } from './job.ts';

export interface Planned {
  cost: Cost;
  needs: readonly string[];
}

/** From this share of a core on a job computes. */
const COMPUTES = 0.7;
/** Part of a machine's cores that all waiting jobs together may take beside computing ones. */
const WAITING_SHARE = 0.4;
/** Each has servers and processes of its own in memory. */
const WAITING_AT_ONCE = 3;
/** Costs are averages. */
const TOLERANCE = 0.25;

const computes = ({ cost }: Planned) => cost.cores >= COMPUTES;

/** The job to be started next beside those that run; undefined while none may. `queue` has the longest first. */
export function nextJob<J extends Planned>(queue: readonly J[], running: readonly J[], cores: number): J | undefined {
  const taken = new Set(running.flatMap(({ needs }) => needs));
  const ready = queue.filter(({ needs }) => !needs.some((need) => taken.has(need)));
  const busy = (jobs: readonly J[]) => jobs.reduce((sum, { cost }) => sum + Math.min(cost.cores, cores), 0);
  const computing = running.filter(computes);
  // Only the first: one that takes all cores would wait for ever for the small ones to end together.
  const first = ready.find(computes);
  if (first && (computing.length === 0 || busy([...computing, first]) <= cores + TOLERANCE)) return first;
  const waiting = running.filter((job) => !computes(job));
  const left = first ? 0 : Math.max(cores - busy(computing), 0);
  const room = WAITING_SHARE * cores + left;
  if (waiting.length >= Math.max(WAITING_AT_ONCE, cores) + Math.floor(left)) return undefined;
  return ready.find((job) => !computes(job) && (waiting.length === 0 || busy([...waiting, job]) <= room));
}

/** Runs all jobs to their end, the longest first. `run` must not throw: what follows is not started then. */
export async function runAll<J extends Planned>(
  jobs: readonly J[],
  cores: number,
  run: (job: J) => Promise<void>,
): Promise<void> {
  const queue = jobs.toSorted((a, b) => b.cost.seconds - a.cost.seconds);
  const running = new Map<J, Promise<void>>();
  while (queue.length > 0 || running.size > 0) {
    const next = nextJob(queue, [...running.keys()], cores);
    if (!next) {
      await Promise.race(running.values());
      continue;
    }
    queue.splice(queue.indexOf(next), 1);
    running.set(
      next,
      run(next).finally(() => running.delete(next)),
    );
  }
}
