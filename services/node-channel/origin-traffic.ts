// How requests to origins fared, bounded: nodes are authenticated, not trusted.
import { LATENCY_BUCKETS } from '../../contract/latency-buckets.ts';
import { TRAFFIC_FAILURES } from '../../contract/origin-failures.ts';
import type { ReportedTraffic } from '../../models/sites/origin-traffic.ts';
import type { OriginTraffic } from '../../proto/gen/svc/node/v1/node_pb.js';

const MAX_ORIGINS = 200;
const MOST = 1_000_000_000;
const ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Each origin once, by its site; what makes no sense is left out. */
export function readOriginTraffic(origins: readonly OriginTraffic[]): Record<string, ReportedTraffic[]> {
  const sites = new Map<string, Map<string, ReportedTraffic>>();
  for (const origin of origins.slice(0, MAX_ORIGINS)) {
    const { siteId, originId } = origin;
    if (!ID.test(siteId) || !ID.test(originId)) continue;
    const ofSite = sites.get(siteId) ?? new Map<string, ReportedTraffic>();
    sites.set(siteId, ofSite);
    ofSite.set(originId, readTraffic(origin));
  }
  return Object.fromEntries([...sites].map(([siteId, ofSite]) => [siteId, [...ofSite.values()]]));
}

function readTraffic({ originId, requests, latency, failures }: OriginTraffic): ReportedTraffic {
  const told = new Map(failures.map(({ name, count }) => [name, count]));
  return {
    originId,
    requests: Math.min(requests, MOST),
    latency: latency.slice(0, LATENCY_BUCKETS).map((count) => Math.min(count, MOST)),
    failures: Object.fromEntries(
      TRAFFIC_FAILURES.flatMap((error) => {
        const count = told.get(error) ?? 0n;
        return count > 0n ? [[error, count > BigInt(MOST) ? MOST : Number(count)]] : [];
      }),
    ),
  };
}
