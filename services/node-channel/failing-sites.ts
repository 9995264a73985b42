// Sites that a node says fail, bounded: nodes are authenticated, not trusted. Which sites are the cluster's, who shows them asks.
import { FAILURE_CAUSES, type FailureCause } from '../../contract/failure-causes.ts';
import type { FailingSite } from '../../proto/gen/svc/node/v1/node_pb.js';

const MAX_SITES = 20;
const MOST_REQUESTS = 1_000_000_000n;
const LAST_MS = 253_402_300_799_000n;
const SITE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** As node_state.failing_sites holds them. */
export interface ToldFailing {
  siteId: string;
  requests: number;
  failed: number;
  sinceMs: number;
  cause: FailureCause;
}

/** Each site once; what makes no sense is left out, an unknown cause is the edge's. */
export function readFailingSites(sites: readonly FailingSite[]): ToldFailing[] {
  const told = new Map<string, ToldFailing>();
  for (const { siteId, requests, failed, sinceMs, cause } of sites.slice(0, MAX_SITES)) {
    const isCounted = requests > 0n && failed > 0n && sinceMs > 0n && sinceMs <= LAST_MS;
    if (!SITE_ID.test(siteId) || !isCounted || told.has(siteId)) continue;
    const all = Number(requests < MOST_REQUESTS ? requests : MOST_REQUESTS);
    told.set(siteId, {
      siteId,
      requests: all,
      failed: Math.min(all, Number(failed < MOST_REQUESTS ? failed : MOST_REQUESTS)),
      sinceMs: Number(sinceMs),
      cause: FAILURE_CAUSES.find((known) => known === cause) ?? 'edge',
    });
  }
  return [...told.values()];
}
