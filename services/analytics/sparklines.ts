import type { Input, Output } from '../../contract/procedure.ts';
import { type analytics, SPARK_POINTS } from '../../contract/resources/analytics.ts';
import { sparkRows } from '../../models/traffic/traffic-sparks.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { whole } from './traffic-sum.ts';

const HOUR_MS = 3_600_000;

export async function readSparklines(
  { pools }: Pick<Runtime, 'pools'>,
  { siteIds }: Input<typeof analytics.sparklines>,
): Promise<Output<typeof analytics.sparklines>> {
  const from = (Math.floor(Date.now() / HOUR_MS) + 1 - SPARK_POINTS) * HOUR_MS;
  const sites = new Map<string, { requests: number[]; failed: number[] }>();
  for (const row of await sparkRows(pools.api, siteIds, from)) {
    const at = Math.round((row.start - from) / HOUR_MS);
    const site = sites.get(row.id) ?? { requests: zeros(), failed: zeros() };
    if (at >= SPARK_POINTS) continue;
    site.requests[at]! += row.requests;
    site.failed[at]! += row.failed;
    sites.set(row.id, site);
  }
  return {
    from: new Date(from).toISOString(),
    bucketSeconds: HOUR_MS / 1000,
    sites: [...sites].map(([siteId, { requests, failed }]) => ({
      siteId,
      requests: requests.map(whole),
      failed: failed.map(whole),
    })),
  };
}

const zeros = () => new Array<number>(SPARK_POINTS).fill(0);
