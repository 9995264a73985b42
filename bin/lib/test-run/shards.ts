// Splits the jobs of a test run over machines. Every machine computes the same split: it depends on names and measured
// costs only.
import { Refusal } from '../progress.ts';
import type { Job } from './job.ts';

export interface Shard {
  /** From 1 to `count`. */
  index: number;
  count: number;
}

const MAX_SHARDS = 99;

/** Reads `2/3`. Throws a Refusal for any other text. */
export function parseShard(text: string): Shard {
  const [, index, count] = /^([1-9]\d?)\/([1-9]\d?)$/.exec(text)?.map(Number) ?? [];
  if (index === undefined || count === undefined || index > count)
    throw new Refusal(`--shard must be i/n with 1 ≤ i ≤ n ≤ ${MAX_SHARDS}, for example 1/3. It is "${text}".`);
  return { index, count };
}

type Weighed = Pick<Job, 'name' | 'cost'>;

/** The jobs of one shard: the most expensive job goes first, each into the shard with the fewest core-seconds so far. */
export function jobsOfShard<J extends Weighed>(jobs: readonly J[], { index, count }: Shard): J[] {
  const coreSeconds = ({ cost }: Weighed) => cost.seconds * cost.cores;
  const order = jobs.toSorted((a, b) => coreSeconds(b) - coreSeconds(a) || (a.name < b.name ? -1 : 1));
  const sums = Array.from({ length: count }, () => 0);
  const own = new Set<J>();
  for (const job of order) {
    const least = sums.indexOf(Math.min(...sums));
    sums[least]! += coreSeconds(job);
    if (least === index - 1) own.add(job);
  }
  return jobs.filter((job) => own.has(job));
}
