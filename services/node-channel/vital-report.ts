// A node's report of how watched sites fare, bounded. Nodes are authenticated, not trusted: lists are cut, numbers are
// held to what a machine can do in the time, and what nobody asked about is left out.
import { MAX_WATCHED_SITES } from '../../models/rollouts/vital-watch.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { ReportVitalsRequest, Vitals } from '../../proto/gen/svc/node/v1/node_pb.js';

/** A report of longer than this says nothing about now. */
const LONGEST_MS = 60_000;
const SHORTEST_MS = 1_000;
/** No edge of ours answers more. */
const MOST_PER_SECOND = 500_000;
const MAX_CODES = 32;
const CODE = /^[a-z0-9-]{1,64}$/;
const MAX_FAILED = 1_000_000;

export interface SiteFigures {
  siteId: string;
  requests: number;
  origin5xx: number;
  edge5xx: number;
  edgeCodes: Record<string, number>;
}

export interface VitalReport {
  track: 'S' | 'C';
  revision: bigint;
  sites: SiteFigures[];
  failed: number;
  restarted: boolean;
}

/** Null for a report that is of no known time or configuration. `watched`: the sites asked about. */
export function readVitalReport(request: ReportVitalsRequest, watched: ReadonlySet<string>): VitalReport | null {
  const { config, coveredMs } = request;
  const track = config && trackOf(config.track);
  if (!track || config.revision <= 0n || config.revision >= 1n << 63n || coveredMs > LONGEST_MS) return null;
  const most = Math.ceil((Math.max(coveredMs, SHORTEST_MS) / 1000) * MOST_PER_SECOND);
  // Restarts and failures are told with the traffic of the node, also where there is none.
  const sites = new Map<string, SiteFigures>([
    ['', { siteId: '', requests: 0, origin5xx: 0, edge5xx: 0, edgeCodes: {} }],
  ]);
  const told = new Set<string>();
  for (const vitals of request.vitals.slice(0, MAX_WATCHED_SITES + 1)) {
    const known = vitals.siteId === '' || watched.has(vitals.siteId);
    if (!known || told.has(vitals.siteId)) continue;
    told.add(vitals.siteId);
    sites.set(vitals.siteId, readFigures(vitals, most));
  }
  return {
    track,
    revision: config.revision,
    sites: [...sites.values()],
    failed: Math.min(request.failed, MAX_FAILED),
    restarted: request.restarted,
  };
}

function trackOf(track: Track): 'S' | 'C' | null {
  return track === Track.STABLE ? 'S' : track === Track.CANARY ? 'C' : null;
}

function readFigures({ siteId, requests, originErrors, edgeErrors }: Vitals, most: number): SiteFigures {
  const clamp = (value: bigint) => Number(value < BigInt(most) ? value : BigInt(most));
  const edgeCodes: Record<string, number> = {};
  let edge5xx = 0;
  for (const { name, count } of edgeErrors.slice(0, MAX_CODES)) {
    if (!CODE.test(name) || name in edgeCodes) continue;
    const counted = Math.min(clamp(count), most - edge5xx);
    if (counted === 0) continue;
    edgeCodes[name] = counted;
    edge5xx += counted;
  }
  return { siteId, requests: clamp(requests), origin5xx: clamp(originErrors), edge5xx, edgeCodes };
}
