// Runs the jobs of a test run beside each other, tells each with its time, and gives what failed beside others another
// attempt by itself.
import { availableParallelism } from 'node:os';
import { say, step } from '../progress.ts';
import type { Tally } from '../run-check.ts';
import type { Job, Result } from './job.ts';
import { runAll } from './schedule.ts';

/** More failing files than these are no accident of the load. */
export const MAX_UNSTEADY = 2;

export interface RunOptions {
  /** What passes only by itself counts as failed where a second attempt would hide what users meet. */
  steady: boolean;
}

/** Files in which users would meet the race: faults, bans, publishing and signing in. */
const MUST_BE_STEADY =
  /(^|[/-])(faults?|bans?|publish(ed)?|changes|sign-in|auth|passkeys?|two-factor|identity)([.-]|$)/;

/** Whether no second attempt may excuse the file. */
export function mustBeSteady(file: string): boolean {
  return MUST_BE_STEADY.test(file);
}

/** Runs all jobs; `done` gets each with what it took. */
export async function runJobs(
  jobs: readonly Job[],
  options: RunOptions,
  done: (job: Job, result: Result) => void,
): Promise<Tally> {
  const total: Tally = { passed: 0, failed: 0, skipped: 0 };
  const running = new Set<Job>();
  const failed: { job: Job; result: Result }[] = [];
  let left = jobs.length;
  const current = step('tests');
  const tell = () => {
    const names = [...running].map(({ name }) => name.replace(/^test\/|\.test\.ts$/g, ''));
    current.detail(`${total.passed} passed, ${total.failed} failed, ${left} to go; ${names.join(', ')}`);
  };
  await runAll(jobs, availableParallelism(), async (job) => {
    running.add(job);
    tell();
    const result = await job.run();
    running.delete(job);
    left--;
    add(total, result);
    if (result.failed > 0) failed.push({ job, result });
    tellResult(job, result);
    done(job, result);
    tell();
  });
  current.done(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  if (failed.length <= MAX_UNSTEADY && failed.every(({ job }) => job.again))
    for (const { job, result } of failed) await tryAgain(job, result, options, total);
  return total;
}

async function tryAgain(job: Job, first: Result, { steady }: RunOptions, total: Tally): Promise<void> {
  say(`${job.name} again, alone:`);
  const second = await job.run();
  tellResult(job, second);
  const excused = second.failed === 0 && !(steady && mustBeSteady(job.name));
  if (second.failed === 0)
    say(
      `  UNSTEADY  ${job.name} failed beside others and passed alone, which points to a race to fix${excused ? '' : '; it concerns users, so it counts as failed'}`,
    );
  if (excused) {
    total.passed += first.failed;
    total.failed -= first.failed;
  }
}

function add(total: Tally, { passed, failed, skipped }: Tally): void {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
}

function tellResult({ name }: Job, { passed, failed, skipped, seconds, cpuSeconds }: Result): void {
  const verdict = failed > 0 ? 'FAILED' : 'ok    ';
  const more = `${failed > 0 ? `, ${failed} failed` : ''}${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  const computed = cpuSeconds === undefined ? '' : `, ${cpuSeconds.toFixed(1)} s of a core`;
  say(`  ${verdict}  ${name}: ${passed} passed${more} (${seconds.toFixed(1)} s${computed})`);
}
