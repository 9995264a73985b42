import { fail } from '../../contract/errors.ts';
import type { Output } from '../../contract/procedure.ts';
import type { overview } from '../../contract/resources/overview.ts';
import { clusterCount } from '../../models/clusters/cluster.ts';
import { type TrafficMinute, trafficMinutes } from '../../models/security/site-request-minute.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Traffic = Output<typeof overview.traffic>;

const MINUTE_MS = 60_000;
/** Longest range that can be asked for; shorter ones are cut from it. */
export const LONGEST_HOURS = 24;

/** Minute by minute; one in which no node counted a request had none. */
export function presentTraffic(minutes: readonly TrafficMinute[], hours = 3): Traffic {
  const last = minutes.at(-1);
  if (!last) return { from: null, requestsPerSecond: [] };
  const first = Math.max(minutes[0]!.at, last.at - (hours * 60 - 1) * MINUTE_MS);
  const values = new Array<number>((last.at - first) / MINUTE_MS + 1).fill(0);
  for (const { at, requests } of minutes) if (at >= first) values[(at - first) / MINUTE_MS] = requests / 60;
  return { from: new Date(first).toISOString(), requestsPerSecond: values };
}

/** All minutes that can be asked for, of one cluster where one is named. Throws CLUSTER_NOT_FOUND. */
export async function readTraffic({ pools }: Runtime, clusterId: string | null): Promise<TrafficMinute[]> {
  if (clusterId !== null && (await clusterCount(pools.api, clusterId)) === 0) fail('CLUSTER_NOT_FOUND');
  return trafficMinutes(pools.api, LONGEST_HOURS, clusterId);
}
