import type { Input, Output } from '../../contract/procedure.ts';
import type { overview } from '../../contract/resources/overview.ts';
import { type TrafficMinute, trafficMinutes } from '../../models/site-request-minute.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Traffic = Output<typeof overview.traffic>;

const MINUTE_MS = 60_000;
/** Longest range that can be asked for; shorter ones are cut from it. */
export const LONGEST_HOURS = 24;

/** Minute by minute; one in which no node counted a request had none. */
export function presentTraffic(
  minutes: readonly TrafficMinute[],
  { hours = 3 }: Input<typeof overview.traffic>,
): Traffic {
  const last = minutes.at(-1);
  if (!last) return { from: null, requestsPerSecond: [] };
  const first = Math.max(minutes[0]!.at, last.at - (hours * 60 - 1) * MINUTE_MS);
  const values = new Array<number>((last.at - first) / MINUTE_MS + 1).fill(0);
  for (const { at, requests } of minutes) if (at >= first) values[(at - first) / MINUTE_MS] = requests / 60;
  return { from: new Date(first).toISOString(), requestsPerSecond: values };
}

/** All minutes that can be asked for. */
export function readTraffic({ pools }: Runtime): Promise<TrafficMinute[]> {
  return trafficMinutes(pools.api, LONGEST_HOURS);
}
