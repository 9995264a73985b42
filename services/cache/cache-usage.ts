import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  CACHE_USAGE_RANGES,
  type CacheUsageSums,
  type clusterCacheUsage,
  type siteCacheUsage,
} from '../../contract/resources/cache-usage.ts';
import { siteCachePoints, zoneUsage } from '../../models/cache/cache-usage.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const NONE: CacheUsageSums = { hits: 0, misses: 0, hitBytes: 0, bytesSent: 0 };

/** Throws SITE_NOT_FOUND. */
export async function getSiteCacheUsage(
  { pools }: Pick<Runtime, 'pools'>,
  { id, range = '24h' }: Input<typeof siteCacheUsage.usage>,
  now = Date.now(),
): Promise<Output<typeof siteCacheUsage.usage>> {
  if (!(await pools.api('site').where({ id }).first('id'))) fail('SITE_NOT_FOUND');
  const { bucketSeconds, seconds } = CACHE_USAGE_RANGES[range];
  const step = bucketSeconds * 1000;
  const to = Math.floor(now / step) * step + step;
  const from = to - seconds * 1000;
  const span = { from: new Date(from), to: new Date(to), seconds: bucketSeconds };
  const known = new Map((await siteCachePoints(pools.api, id, span)).map(({ start, ...sums }) => [start, sums]));
  const starts = Array.from({ length: seconds / bucketSeconds }, (_, index) => from + index * step);
  return {
    range,
    bucketSeconds,
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    points: starts.map((start) => ({ start: new Date(start).toISOString(), ...(known.get(start) ?? NONE) })),
    totals: [...known.values()].reduce(added, NONE),
  };
}

function added(a: CacheUsageSums, b: CacheUsageSums): CacheUsageSums {
  return {
    hits: a.hits + b.hits,
    misses: a.misses + b.misses,
    hitBytes: a.hitBytes + b.hitBytes,
    bytesSent: a.bytesSent + b.bytesSent,
  };
}

/** Throws CLUSTER_NOT_FOUND. */
export async function getClusterCacheUsage(
  { pools }: Pick<Runtime, 'pools'>,
  { clusterId }: Input<typeof clusterCacheUsage.usage>,
): Promise<Output<typeof clusterCacheUsage.usage>> {
  if (!(await pools.api('cluster').where({ id: clusterId }).first('id'))) fail('CLUSTER_NOT_FOUND');
  return zoneUsage(pools.api, clusterId);
}
