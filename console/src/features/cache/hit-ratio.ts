// How much of what a site served came from the cache. Pure.
import type { CacheUsageSums } from '@contract/resources/cache-usage.ts';

export const MEASURES = ['requests', 'bytes'] as const;
export type Measure = (typeof MEASURES)[number];

/** 0 to 1; null: there was nothing that could come from the cache. Bytes are compared with all that the site sent. */
export function hitRatio({ hits, misses, hitBytes, bytesSent }: CacheUsageSums, measure: Measure): number | null {
  const [part, whole] = measure === 'requests' ? [hits, hits + misses] : [hitBytes, bytesSent];
  return whole === 0 ? null : Math.min(1, part / whole);
}
