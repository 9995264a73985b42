import { LATENCY_BUCKETS, latencyPercentile } from '../../contract/latency-buckets.ts';
import { TRAFFIC_FAILURES } from '../../contract/origin-failures.ts';
import type { Output } from '../../contract/procedure.ts';
import type { originHealth } from '../../contract/resources/origin-health.ts';
import type { ReportedTraffic } from '../../models/sites/origin-traffic.ts';

type Traffic = Output<typeof originHealth.originHealth>['items'][number]['traffic'];

/** What all nodes report of an origin, as one; null where none does. */
export function trafficOf(reports: readonly ReportedTraffic[]): Traffic {
  if (reports.length === 0) return null;
  const sum = (of: (report: ReportedTraffic) => number | undefined) =>
    reports.reduce((total, report) => total + (of(report) ?? 0), 0);
  const latency = Array.from({ length: LATENCY_BUCKETS }, (_, bucket) => sum((report) => report.latency[bucket]));
  return {
    requests: sum(({ requests }) => requests),
    failures: TRAFFIC_FAILURES.map((error) => ({ error, count: sum(({ failures }) => failures[error]) }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count),
    p50Ms: latencyPercentile(latency, 50),
    p95Ms: latencyPercentile(latency, 95),
    latency,
    nodes: reports.length,
  };
}
