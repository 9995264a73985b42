// How requests to origins fared in the last minute, as node_state.origin_traffic holds it by site.
import type { TrafficFailure } from '../../contract/origin-failures.ts';

export interface ReportedTraffic {
  originId: string;
  requests: number;
  /** Responses by the buckets of their latency; empty buckets at the end are left out. */
  latency: number[];
  failures: Partial<Record<TrafficFailure, number>>;
}
