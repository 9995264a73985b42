import { fail } from '../../contract/errors.ts';
import type { TrafficKind } from '../../models/traffic/traffic-series.ts';

/** Whose statistics are asked for: of neither, of all sites. */
export interface SubjectAsked {
  siteId?: string | undefined;
  clusterId?: string | undefined;
}

export interface Subject {
  kind: Exclude<TrafficKind, 'node'>;
  /** '' of all sites. */
  id: string;
}

/** Throws ANALYTICS_QUERY_INVALID for a site and a cluster at the same time. */
export function subjectOf({ siteId, clusterId }: SubjectAsked): Subject {
  if (siteId !== undefined && clusterId !== undefined) fail('ANALYTICS_QUERY_INVALID');
  if (siteId !== undefined) return { kind: 'site', id: siteId };
  return clusterId === undefined ? { kind: 'all', id: '' } : { kind: 'cluster', id: clusterId };
}
