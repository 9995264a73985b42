import test from 'ava';
import type { Job } from '../../../../../bin/lib/test-run/job.ts';
import { mustBeSteady, runJobs } from '../../../../../bin/lib/test-run/run-jobs.ts';

/** A job whose attempts fail so many tests each. */
function job(name: string, failures: number[], more: Partial<Job> = {}): Job & { runs: number } {
  const made = {
    name,
    suite: 'e2e' as const,
    cost: { seconds: 1, cores: 1 },
    needs: [],
    again: true,
    ...more,
    runs: 0,
    run: async () => {
      const failed = failures[made.runs++] ?? 0;
      return { passed: 3 - failed, failed, skipped: 0, seconds: 1, cpuSeconds: 1 };
    },
  };
  return made;
}
const outcome = (jobs: Job[], steady = false) => runJobs(jobs, { steady }, () => undefined);

test('what fails beside others is tried again by itself, and passes then', async (t) => {
  const shaky = job('test/e2e/offline.test.ts', [1, 0]);
  t.deepEqual(await outcome([shaky, job('test/e2e/demo.test.ts', [0])]), { passed: 6, failed: 0, skipped: 0 });
  t.is(shaky.runs, 2);
});

test('what fails again stays failed', async (t) => {
  t.like(await outcome([job('test/e2e/offline.test.ts', [2, 1])]), { passed: 1, failed: 2 });
});

test('no more than two files are tried again', async (t) => {
  const jobs = ['a', 'b', 'c'].map((name) => job(`test/e2e/${name}.test.ts`, [1, 0]));
  t.like(await outcome(jobs), { failed: 3 });
  t.deepEqual(
    jobs.map(({ runs }) => runs),
    [1, 1, 1],
  );
});

test('a job that shares nothing with others is not tried again', async (t) => {
  const unit = job('unit', [1, 0], { again: false });
  t.like(await outcome([unit]), { failed: 1 });
  t.is(unit.runs, 1);
});

test('faults, bans, publishing and signing in must be steady where that is asked for', async (t) => {
  const files = [
    'e2e/faults',
    'integration/bans',
    'integration/automatic-bans',
    'integration/publish',
    'e2e/kernel-ban',
  ];
  for (const file of [...files, 'e2e/console-sign-in', 'integration/two-factor', 'integration/published-reasons'])
    t.true(mustBeSteady(`test/${file}.test.ts`), file);
  for (const file of ['e2e/demo', 'integration/sites', 'integration/origin-policy', 'e2e/console-table'])
    t.false(mustBeSteady(`test/${file}.test.ts`), file);
  const shaky = () => job('test/e2e/faults.test.ts', [1, 0]);
  t.like(await outcome([shaky()]), { failed: 0 });
  t.like(await outcome([shaky()], true), { passed: 2, failed: 1 });
});
