import test from 'ava';
import { jobsOfShard, parseShard } from '../../../../../bin/lib/test-run/shards.ts';

const job = (name: string, seconds: number, cores: number) => ({ name, cost: { seconds, cores } });
const jobs = Array.from({ length: 60 }, (_, index) => job(`job ${index}`, (index * 37) % 50, 0.5 + (index % 3) / 2));
const coreSeconds = (some: typeof jobs) => some.reduce((sum, { cost }) => sum + cost.seconds * cost.cores, 0);

test('every job is in exactly one shard', (t) => {
  for (const count of [1, 2, 3, 7, 61]) {
    const names = Array.from({ length: count }, (_, index) => jobsOfShard(jobs, { index: index + 1, count })).flat();
    t.deepEqual(names.map(({ name }) => name).sort(), jobs.map(({ name }) => name).sort());
  }
});

test('the order in which jobs are found does not change a shard', (t) => {
  const shard = { index: 2, count: 3 };
  const names = (some: typeof jobs) =>
    jobsOfShard(some, shard)
      .map(({ name }) => name)
      .sort();
  t.deepEqual(names(jobs.toReversed()), names(jobs));
});

test('shards differ by less than the most expensive job', (t) => {
  const sums = [1, 2, 3, 4].map((index) => coreSeconds(jobsOfShard(jobs, { index, count: 4 })));
  const largest = Math.max(...jobs.map(({ cost }) => cost.seconds * cost.cores));
  t.true(Math.max(...sums) - Math.min(...sums) < largest, sums.join());
});

test('a shard is written as i/n with i from 1 to n', (t) => {
  t.deepEqual(parseShard('2/3'), { index: 2, count: 3 });
  for (const text of ['0/2', '3/2', '1', '1/0', '-1/2', '1/2/3', 'a/b', '1/100', ''])
    t.throws(() => parseShard(text), { message: /--shard must be i\/n/ }, text);
});
