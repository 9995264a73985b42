// A stored task and where its nodes are -> the task of the contract.
import type { Knex } from 'knex';
import type { CacheTask, CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import type { CacheTaskRow } from '../../models/cache/cache-task.ts';
import { hasReached, type PurgeNodes, readPurgeNodes, resultsAt } from '../../models/cache/purge-nodes.ts';

/** The tasks as of now. */
export async function presentTasks(sql: Knex, tasks: readonly CacheTaskRow[], now = new Date()): Promise<CacheTask[]> {
  const clusters = [
    ...new Set(tasks.flatMap(({ places }) => places.filter(isMoving).map(({ clusterId }) => clusterId))),
  ];
  const known = new Map<string, PurgeNodes>();
  for (const id of clusters) known.set(id, await readPurgeNodes(sql, id));
  return tasks.map((task) => presentTask(task, known, now));
}

/** Whether results of it may be others than those that are stored. */
function isMoving({ nodes }: CacheTaskRow['places'][number]): boolean {
  return nodes === null || nodes.some(({ errorCode }) => errorCode === 'task_expired');
}

/** `known`: the nodes of each cluster with a place that moves. */
export function presentTask(
  { places, createdAt, finishedAt, ...task }: CacheTaskRow,
  known: ReadonlyMap<string, PurgeNodes>,
  now: Date,
): CacheTask {
  const nodes = places.flatMap((place) => {
    const there = known.get(place.clusterId);
    if (place.nodes) return there ? place.nodes.map((result) => recovered(result, there, place)) : place.nodes;
    return there ? resultsAt(there, { ...task, ...place, createdAt }, now) : [];
  });
  const isEnded = nodes.every(isFinished);
  const state = isEnded ? endOf(task, nodes) : nodes.some(isFinished) ? 'running' : 'pending';
  const end = finishedAt ?? (isEnded ? (lastOf(nodes) ?? createdAt) : null);
  return { ...task, state, nodes, createdAt: createdAt.toISOString(), finishedAt: end?.toISOString() ?? null };
}

/** When the last node finished; null where that is not known of any. */
export function lastOf(nodes: readonly CacheTaskNode[]): Date | null {
  const times = nodes.flatMap(({ finishedAt }) => finishedAt ?? []);
  return times.length > 0 ? new Date(times.sort().at(-1)!) : null;
}

function endOf({ type }: Pick<CacheTask, 'type'>, nodes: readonly CacheTaskNode[]): 'succeeded' | 'failed' {
  const isBuilt = type !== 'prefetch' && type !== 'sitemap';
  return isBuilt && nodes.every(({ state }) => state !== 'failed') ? 'succeeded' : 'failed';
}

export function isFinished({ state }: CacheTaskNode): boolean {
  return state !== 'pending' && state !== 'running';
}

/** A node on which the task expired may be back. */
function recovered(
  result: CacheTaskNode,
  { epoch, nodes }: PurgeNodes,
  place: CacheTaskRow['places'][number],
): CacheTaskNode {
  if (result.errorCode !== 'task_expired') return result;
  const node = nodes.find(({ id }) => id === result.nodeId);
  if (!node || !hasReached(node, epoch, place)) return result;
  return { ...result, recoveredAt: node.reachedAt?.toISOString() ?? null };
}
