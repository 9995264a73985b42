import test from 'ava';
import { nextJob, type Planned, runAll } from '../../../../../bin/lib/test-run/schedule.ts';

const CORES = 2;

interface Named extends Planned {
  name: string;
}
const job = (name: string, seconds: number, cores: number, ...needs: string[]): Named => ({
  name,
  cost: { seconds, cores },
  needs,
});
const next = (queue: Named[], running: Named[] = []) => nextJob(queue, running, CORES)?.name;

const build = job('build', 90, 2);
const browser = job('browser', 60, 1);
const console_ = job('console', 10, 0.9);
const sleeper = job('sleeper', 50, 0.2);

test('jobs that compute share the cores', (t) => {
  t.is(next([browser, console_]), 'browser');
  t.is(next([console_], [browser]), 'console');
  t.is(next([console_], [browser, browser]), undefined);
});

test('what waits runs beside what takes all cores, a few at once', (t) => {
  t.is(next([browser, sleeper], [build]), 'sleeper');
  t.is(next([browser, sleeper], [build, sleeper, sleeper]), 'sleeper');
  t.is(next([browser, sleeper], [build, sleeper, sleeper, sleeper]), undefined);
});

test('what takes all cores is not kept waiting by shorter jobs', (t) => {
  t.is(next([build, console_], [browser]), undefined);
  t.is(next([build, console_], [sleeper]), 'build');
});

test('once nothing is left that computes, what waits may use its cores', (t) => {
  const half = job('half', 30, 0.6);
  t.is(next([browser, half], [browser, browser, half]), undefined);
  t.is(next([half], [half]), 'half');
  t.is(next([half], [half, half]), 'half');
});

test('jobs that need the same are not beside each other', (t) => {
  const demo = job('demo', 80, 0.4, 'ports');
  const readme = job('readme', 70, 0.4, 'ports');
  t.is(next([readme, sleeper], [demo]), 'sleeper');
  t.is(next([readme], [sleeper]), 'readme');
});

test('every job runs once, the longest first, never more beside each other than may', async (t) => {
  const jobs = [console_, sleeper, browser, build, job('demo', 80, 0.4, 'ports'), job('readme', 70, 0.4, 'ports')];
  const running = new Set<Named>();
  const order: string[] = [];
  await runAll(jobs, CORES, async (each) => {
    const beside = [...running];
    t.false(beside.some(({ needs }) => needs.some((need) => each.needs.includes(need))));
    t.true(beside.filter(({ cost }) => cost.cores >= 0.7).reduce((sum, { cost }) => sum + cost.cores, 0) <= CORES);
    running.add(each);
    order.push(each.name);
    await new Promise((resolve) => setImmediate(resolve));
    running.delete(each);
  });
  t.is(order[0], 'build');
  t.deepEqual(order.toSorted(), jobs.map(({ name }) => name).sort());
});
