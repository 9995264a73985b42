import type { ReasonEntries } from '../reason-entry.ts';

export const reasons = {
  cluster_cache_updated: 'Disk space of the cache changed.',
  node_cache_updated: 'Disk space of the cache of a node changed.',
} satisfies ReasonEntries;
