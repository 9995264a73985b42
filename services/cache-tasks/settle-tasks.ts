import { clustersWithOpenPlaces, openPlaces, settlePlaces } from '../../models/cache/cache-task.ts';
import { readPurgeNodes, resultsAt } from '../../models/cache/purge-nodes.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isFinished, lastOf } from './present-task.ts';

/**
 * Stores the results of tasks that all nodes have finished. Nodes reach places in order, so where one task has to wait, so do
 * those after it.
 */
export async function settleCacheTasks({ pools: { api } }: Pick<Runtime, 'pools'>, signal: AbortSignal): Promise<void> {
  for (const clusterId of await clustersWithOpenPlaces(api)) {
    if (signal.aborted) return;
    const open = await openPlaces(api, clusterId);
    const there = await readPurgeNodes(api, clusterId);
    const now = new Date();
    const settled = [];
    for (const { taskId, ...place } of open) {
      const nodes = resultsAt(there, place, now);
      if (!nodes.every(isFinished)) break;
      settled.push({ taskId, clusterId, nodes, at: lastOf(nodes) ?? now });
    }
    await settlePlaces(api, settled);
  }
}
