// Top lists of the batches that a process takes in a second, by site and by cluster, and of all sites.
import type { IsOfCluster } from '../../models/sites/sites-of-clusters.ts';
import type { TopMark } from '../../models/traffic/top-list.ts';
import { LATEST_DAYS } from '../../models/traffic/traffic-columns.ts';
import type { StatsRow } from './stats-report.ts';
import { entry } from './stats-sums.ts';

const DAY_MS = 86_400_000;
/** Keys of one list and minute that are noted. */
const MOST_KEYS = 250;
/** Keys of one list and minute that are summed; others do not count once there are so many. */
const MOST_SUMMED = 10_000;

type Sums = Map<string, [requests: number, bytes: number]>;

export class TopSums {
  readonly #since: number;
  /** By site or cluster ('' = all sites), minute and list. */
  readonly #subjects = new Map<string, Map<number, Map<number, Sums>>>();

  /** What is older than a week at this time, in milliseconds, does not become statistics. */
  constructor(now: number) {
    this.#since = now - LATEST_DAYS * DAY_MS;
  }

  add(clusterId: string, rows: readonly StatsRow[], isOfCluster: IsOfCluster): void {
    for (const { siteId, minute, tops } of rows) {
      if (tops.length === 0 || siteId === '' || minute <= this.#since || !isOfCluster({ siteId, clusterId })) continue;
      for (const id of [siteId, clusterId, '']) {
        const lists = entry(
          entry(this.#subjects, id, () => new Map<number, Map<number, Sums>>()),
          minute,
          () => new Map<number, Sums>(),
        );
        for (const { list, key, requests, bytesSent } of tops) {
          const sums = entry(lists, list, (): Sums => new Map());
          const sum = sums.get(key);
          if (sum) {
            sum[0] += requests;
            sum[1] += bytesSent;
          } else if (sums.size < MOST_SUMMED) sums.set(key, [requests, bytesSent]);
        }
      }
    }
  }

  marks(): TopMark[] {
    const marks: TopMark[] = [];
    for (const [subject, minutes] of this.#subjects) {
      for (const [minute, lists] of minutes) {
        for (const [list, sums] of lists) marks.push({ subject, list, minute, items: written(sums) });
      }
    }
    return marks;
  }
}

function written(sums: Sums): string {
  const all = [...sums];
  const kept = all.length <= MOST_KEYS ? all : all.sort((a, b) => b[1][0] - a[1][0]).slice(0, MOST_KEYS);
  return JSON.stringify(Object.fromEntries(kept));
}
