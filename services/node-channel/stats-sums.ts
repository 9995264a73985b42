// Sums over the batches that a process takes in a second: a row for each cluster, site and minute.
import type { SummedMinute } from '../../models/usage-batch.ts';
import type { StatsRow } from './stats-report.ts';

interface Sum {
  clusterId: string;
  siteId: string;
  minute: number;
  requests: number;
  bytesSent: bigint;
  bytesReceived: bigint;
  statuses: Map<number, number>;
  counts: Map<string, number>;
  latency: number[];
}

export class StatsSums {
  readonly #sums = new Map<string, Sum>();

  add(clusterId: string, row: StatsRow): void {
    const key = `${row.minute} ${row.siteId} ${clusterId}`;
    let sum = this.#sums.get(key);
    if (!sum) {
      const { siteId, minute } = row;
      const none = { requests: 0, bytesSent: 0n, bytesReceived: 0n };
      sum = { clusterId, siteId, minute, ...none, statuses: new Map(), counts: new Map(), latency: [] };
      this.#sums.set(key, sum);
    }
    sum.requests += row.requests;
    sum.bytesSent += row.bytesSent;
    sum.bytesReceived += row.bytesReceived;
    for (const { code, count } of row.statuses) add(sum.statuses, code, count);
    for (const { name, count } of row.counts) add(sum.counts, name, count);
    for (const [bucket, count] of row.latency.entries()) {
      sum.latency[bucket] = (sum.latency[bucket] ?? 0) + Number(count);
    }
  }

  rows(): SummedMinute[] {
    return [...this.#sums.values()].map(({ statuses, counts, latency, bytesSent, bytesReceived, ...sum }) => ({
      ...sum,
      bytesSent: bytesSent.toString(),
      bytesReceived: bytesReceived.toString(),
      statuses: statuses.size > 0 ? JSON.stringify(Object.fromEntries(statuses)) : null,
      counts: counts.size > 0 ? JSON.stringify(Object.fromEntries(counts)) : null,
      latency: latency.length > 0 ? `{${latency.join()}}` : null,
    }));
  }
}

function add<K>(sums: Map<K, number>, key: K, count: bigint): void {
  sums.set(key, (sums.get(key) ?? 0) + Number(count));
}
