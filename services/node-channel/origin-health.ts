// Origins that a node says fail, bounded: nodes are authenticated, not trusted. Which sites are the cluster's, who shows them asks.
import { ORIGIN_FAILURES } from '../../contract/origin-failures.ts';
import type { ReportedHealth, ReportedOrigin } from '../../models/sites/origin-health.ts';
import type { OriginHealth } from '../../proto/gen/svc/node/v1/node_pb.js';

const MAX_ORIGINS = 500;
const MOST_FAILURES = 1_000_000;
const LAST_MS = 253_402_300_799_000n;
const SITE_ID = /^[A-Za-z0-9_-]{1,64}$/;
const ORIGIN_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Each origin and source once; what makes no sense is left out. */
export function readOriginHealth(origins: readonly OriginHealth[]): ReportedHealth {
  const sites = new Map<string, Map<string, ReportedOrigin>>();
  for (const origin of origins.slice(0, MAX_ORIGINS)) {
    const { siteId, originId, active } = origin;
    if (!SITE_ID.test(siteId) || !ORIGIN_ID.test(originId)) continue;
    const ofSite = sites.get(siteId) ?? new Map<string, ReportedOrigin>();
    sites.set(siteId, ofSite);
    ofSite.set(`${originId} ${active}`, readOrigin(origin));
  }
  return {
    sites: Object.fromEntries([...sites].map(([siteId, ofSite]) => [siteId, [...ofSite.values()]])),
    cut: origins.length >= MAX_ORIGINS,
  };
}

function readOrigin(origin: OriginHealth): ReportedOrigin {
  const { originId, active, healthy, status, stretchedSeconds } = origin;
  return {
    originId,
    active,
    healthy,
    failures: Math.min(origin.consecutiveFailures, MOST_FAILURES),
    error: ORIGIN_FAILURES.find((known) => known === origin.error) ?? null,
    status: status >= 100 && status <= 999 ? status : null,
    failedMs: time(origin.lastFailureMs),
    sinceMs: time(origin.downSinceMs),
    untilMs: time(origin.downUntilMs),
    checkedMs: time(origin.lastCheckMs),
    interval: stretchedSeconds > 0 ? Math.min(stretchedSeconds, MOST_FAILURES) : null,
  };
}

function time(ms: bigint): number | null {
  return ms > 0n && ms <= LAST_MS ? Number(ms) : null;
}
