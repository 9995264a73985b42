// What the cache does for a site, and how full it is at the nodes of a cluster.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, OneOf, Timestamp } from '../scalars/common.ts';

/** Ranges with the length of a point and of the whole, in seconds. */
export const CACHE_USAGE_RANGES = {
  '1h': { bucketSeconds: 300, seconds: 3600 },
  '24h': { bucketSeconds: 1800, seconds: 86_400 },
} as const;
export type CacheUsageRange = keyof typeof CACHE_USAGE_RANGES;

const counted = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const sums = {
  hits: counted('Requests with `X-Cache` HIT, STALE, UPDATING or REVALIDATED.'),
  misses: counted('Requests with `X-Cache` MISS or EXPIRED. BYPASS is neither a hit nor a miss.'),
  hitBytes: counted('Bytes of the responses of hits, with headers.'),
  bytesSent: counted('Bytes sent to clients, with headers.'),
};

export const CacheUsageSums = Type.Object(sums);
export type CacheUsageSums = Static<typeof CacheUsageSums>;

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

export const siteCacheUsage = resource('sites.cache', {
  usage: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/cache/usage',
    summary: 'Returns hits, misses and bytes of the cache for a site over time. Nodes report them within 2 minutes.',
    input: Input({
      id: Id,
      range: Type.Optional(
        OneOf(Object.keys(CACHE_USAGE_RANGES) as CacheUsageRange[], {
          description: 'Time before now, with points of 5 minutes (1h) or 30 minutes (24h). Default 24h.',
        }),
      ),
    }),
    output: Type.Object({
      range: OneOf(Object.keys(CACHE_USAGE_RANGES) as CacheUsageRange[]),
      bucketSeconds: Type.Integer({ minimum: 300, maximum: 1800, description: 'Length of a point in seconds.' }),
      from: { ...Timestamp, description: 'Start of the first point.' },
      to: { ...Timestamp, description: 'Exclusive end of the last point, which is the running one.' },
      points: Type.Array(Type.Object({ start: Timestamp, ...sums }), {
        description: 'All points of the range, also those without traffic.',
      }),
      totals: CacheUsageSums,
    }),
    errors: ['SITE_NOT_FOUND'],
  }),
});

export const clusterCacheUsage = resource('clusters.cache', {
  usage: procedure({
    ...reads,
    access: 'operator',
    path: '/clusters/{clusterId}/cache/usage',
    summary: 'Returns the disk space that the caches of the nodes of a cluster take in total.',
    input: Input({ clusterId: Id }),
    output: Type.Object({
      usedBytes: counted('Bytes in use as of the last heartbeats.'),
      maxBytes: counted('Sum of the largest sizes of these caches, in bytes.'),
      nodes: Type.Integer({ minimum: 0, description: 'Active nodes that have reported the figures.' }),
    }),
    errors: ['CLUSTER_NOT_FOUND'],
  }),
});
