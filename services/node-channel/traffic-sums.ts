// Sums for statistics over the batches that a process takes in a second: a row for each minute, and one for each cluster or node
// and minute. All are of sites alone, like usage.
import type { IsOfCluster } from '../../models/sites/sites-of-clusters.ts';
import { LATEST_DAYS } from '../../models/traffic/traffic-columns.ts';
import type { TrafficMark } from '../../models/traffic/traffic-mark.ts';
import type { SummedMinute } from '../../models/usage/usage-batch.ts';
import type { StatsBatch, StatsRow } from './stats-report.ts';
import { countsNothing, entry } from './stats-sums.ts';

const DAY_MS = 86_400_000;

class Sum {
  requests = 0;
  bytesSent = 0n;
  bytesReceived = 0n;
  hits = 0;
  misses = 0;
  /** By the first digit of the status. */
  readonly classes: [number, number, number, number, number] = [0, 0, 0, 0, 0];

  addStatus(code: number, n: number): void {
    this.classes[Math.floor(code / 100) - 1]! += n;
  }

  get amounts(): (number | string)[] {
    const { requests, bytesSent, bytesReceived, hits, misses, classes } = this;
    return [requests, bytesSent.toString(), bytesReceived.toString(), hits, misses, ...classes];
  }
}

class SumOfAll extends Sum {
  readonly #figures = new Map<string, number>();

  addKept({ requests, bytesSent, bytesReceived, cacheHits, cacheMisses, of }: SummedMinute): void {
    this.requests += requests;
    this.bytesSent += BigInt(bytesSent);
    this.bytesReceived += BigInt(bytesReceived);
    this.hits += cacheHits;
    this.misses += cacheMisses;
    for (const [code, n] of of.statuses) {
      this.addStatus(code, n);
      this.#count(`s:${code}`, n);
    }
    for (const [name, n] of of.counts) this.#count(`n:${name}`, n);
    for (const [bucket, n] of of.latency.entries()) this.#count(`l:${bucket}`, n);
  }

  /** JSON; null: there are none. */
  get figures(): string | null {
    return this.#figures.size > 0 ? JSON.stringify(Object.fromEntries(this.#figures)) : null;
  }

  #count(key: string, n: number): void {
    if (n > 0) this.#figures.set(key, (this.#figures.get(key) ?? 0) + n);
  }
}

export class TrafficSums {
  readonly #since: number;
  readonly #all = new Map<number, SumOfAll>();
  readonly #clusters = new Map<string, Map<number, SumOfAll>>();
  readonly #nodes = new Map<string, Map<number, Sum>>();

  /** What is older than a week at this time, in milliseconds, does not become statistics. */
  constructor(now: number) {
    this.#since = now - LATEST_DAYS * DAY_MS;
  }

  /** Adds to the sums of all sites, and of those of each cluster. */
  addKept(rows: readonly SummedMinute[]): void {
    for (const row of rows) {
      const { clusterId, siteId, minute } = row;
      if (siteId === '' || minute <= this.#since) continue;
      const minutes = entry(this.#clusters, clusterId, () => new Map<number, SumOfAll>());
      entry(this.#all, minute, () => new SumOfAll()).addKept(row);
      entry(minutes, minute, () => new SumOfAll()).addKept(row);
    }
  }

  /** Adds to the sums of the node. */
  addBatch(
    { nodeId, clusterId }: { nodeId: string; clusterId: string },
    { rows, numbers }: Pick<StatsBatch, 'rows' | 'numbers'>,
    isOfCluster: IsOfCluster,
  ): void {
    for (const row of rows) {
      const { siteId, minute } = row;
      if (siteId === '' || minute <= this.#since || countsNothing(row) || !isOfCluster({ siteId, clusterId })) continue;
      const minutes = entry(this.#nodes, nodeId, () => new Map<number, Sum>());
      addRow(
        entry(minutes, minute, () => new Sum()),
        row,
        numbers,
      );
    }
  }

  marks(): TrafficMark[] {
    const marks: TrafficMark[] = [];
    for (const [minute, { amounts, figures }] of this.#all)
      marks.push({ kind: 'all', id: '', minute, amounts, figures });
    for (const [id, minutes] of this.#clusters) {
      for (const [minute, { amounts, figures }] of minutes) {
        marks.push({ kind: 'cluster', id, minute, amounts, figures });
      }
    }
    for (const [id, minutes] of this.#nodes) {
      for (const [minute, { amounts }] of minutes) marks.push({ kind: 'node', id, minute, amounts, figures: null });
    }
    return marks;
  }
}

/** `numbers` are those of the row's batch. */
function addRow(sum: Sum, row: StatsRow, numbers: Float64Array): void {
  sum.requests += row.requests;
  sum.bytesSent += BigInt(row.bytesSent);
  sum.bytesReceived += BigInt(row.bytesReceived);
  sum.hits += row.cacheHits;
  sum.misses += row.cacheMisses;
  let { at } = row;
  for (let left = row.statuses; left > 0; left--) {
    const code = numbers[at++]!;
    const n = numbers[at++]!;
    // What does not count has no code that makes sense either.
    if (n > 0) sum.addStatus(code, n);
  }
}
