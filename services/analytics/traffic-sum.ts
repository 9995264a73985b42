// Rows of statistics added up, and what a point says of them.
import { FAILURE_CAUSES, type FailureCause } from '../../contract/failure-causes.ts';
import { LATENCY_BUCKETS, latencyPercentile } from '../../contract/latency-buckets.ts';
import type { TrafficPoint, TrafficSums } from '../../contract/resources/analytics.ts';
import type { TrafficRow } from '../../models/traffic/traffic-series.ts';

const BLOCKED = 'n:blocked.';
const ISSUED = 'n:challenge.shown.';
const PASSED = 'n:challenge.passed.';
const FAILED = 'failed.';
const ORIGIN_LATENCY = 'n:origin-latency.';
const CAUSES: ReadonlySet<string> = new Set(FAILURE_CAUSES);

export class TrafficSum {
  requests = 0;
  bytesSent = 0;
  bytesReceived = 0;
  cacheHits = 0;
  cacheMisses = 0;
  readonly figures = new Map<string, number>();

  add({ requests, bytesSent, bytesReceived, cacheHits, cacheMisses, figures }: TrafficRow): void {
    this.requests += requests;
    this.bytesSent += bytesSent;
    this.bytesReceived += bytesReceived;
    this.cacheHits += cacheHits;
    this.cacheMisses += cacheMisses;
    for (const key in figures) this.figures.set(key, (this.figures.get(key) ?? 0) + figures[key]!);
  }

  /** What a point says, without its start. */
  counts(): Omit<TrafficPoint, 'start'> {
    const counts = {
      requests: whole(this.requests),
      bytesSent: whole(this.bytesSent),
      bytesReceived: whole(this.bytesReceived),
      cacheHits: whole(this.cacheHits),
      cacheMisses: whole(this.cacheMisses),
      status1xx: 0,
      status2xx: 0,
      status3xx: 0,
      status4xx: 0,
      status5xx: 0,
      blocked: 0,
      challengesIssued: 0,
      challengesPassed: 0,
    };
    const latency = new Array<number>(LATENCY_BUCKETS).fill(0);
    const originLatency = new Array<number>(LATENCY_BUCKETS).fill(0);
    for (const [key, n] of this.figures) {
      if (key.startsWith('s:')) counts[`status${key[2]}xx` as 'status2xx'] += n;
      else if (key.startsWith('l:')) count(latency, Number(key.slice(2)), n);
      else if (key.startsWith(ORIGIN_LATENCY)) count(originLatency, Number(key.slice(ORIGIN_LATENCY.length)), n);
      else if (key.startsWith(BLOCKED)) counts.blocked += n;
      else if (key.startsWith(ISSUED)) counts.challengesIssued += n;
      else if (key.startsWith(PASSED)) counts.challengesPassed += n;
    }
    return {
      ...counts,
      failures: this.#failures(),
      latency: percentiles(latency),
      originLatency: percentiles(originLatency),
    };
  }

  /** Requests by status, most first. */
  statuses(): { status: number; requests: number }[] {
    return [...this.figures]
      .filter(([key]) => key.startsWith('s:'))
      .map(([key, n]) => ({ status: Number(key.slice(2)), requests: whole(n) }))
      .sort((a, b) => b.requests - a.requests || a.status - b.status);
  }

  /** Names come from nodes: those that no node of ours has are left out. */
  #failures(): TrafficPoint['failures'] {
    return this.named(FAILED)
      .filter(({ name }) => CAUSES.has(name))
      .map(({ name, requests }) => ({ cause: name as FailureCause, requests }));
  }

  /** Counts whose names begin so, by the rest of the name, most first. */
  named(prefix: string): { name: string; requests: number }[] {
    return [...this.figures]
      .filter(([key]) => key.startsWith(`n:${prefix}`))
      .map(([key, n]) => ({ name: key.slice(2 + prefix.length), requests: whole(n) }))
      .sort((a, b) => b.requests - a.requests || a.name.localeCompare(b.name));
  }
}

/** Totals of points, given their sum and the most bytes of one of them. */
export function totalsOf(sum: TrafficSum, mostBytes: number, bucketSeconds: number): TrafficSums {
  return { ...sum.counts(), peakBytesPerSecond: mostBytes / bucketSeconds };
}

/** Adds where there is a place: names come from nodes. */
function count(to: number[], at: number, n: number): void {
  if (to[at] !== undefined) to[at] += n;
}

export function whole(n: number): number {
  return Math.min(Math.round(n), Number.MAX_SAFE_INTEGER);
}

function percentiles(latency: readonly number[]): TrafficPoint['latency'] {
  return {
    p50Ms: latencyPercentile(latency, 50),
    p95Ms: latencyPercentile(latency, 95),
    p99Ms: latencyPercentile(latency, 99),
  };
}
