// Clusters for a choice of one.
import { clusters } from '@contract/resources/clusters.ts';
import { call } from '@/shared/api/call.ts';

/** Clusters with the text in their name, by name. */
export async function findClusters(search: string, pageSize: number, signal: AbortSignal) {
  return call(clusters.list, { pageSize, ...(search ? { search } : {}) }, { signal });
}

export const clusterNamed = (id: string, signal: AbortSignal) => call(clusters.get, { id }, { signal });
