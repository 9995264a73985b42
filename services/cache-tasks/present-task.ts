// A stored task and where its nodes are -> the task of the contract.
import type { CacheTask, CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import type { CacheTaskRow } from '../../models/cache/cache-task.ts';
import { resultOf } from '../../models/cache/node-result.ts';
import { type PrefetchNow, prefetchesOf } from '../../models/cache/prefetch-node.ts';
import { progress } from '../../models/cache/prefetch-result.ts';
import { hasReached, type PurgeNodes, readPurgeNodes, resultsAt } from '../../models/cache/purge-nodes.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];

/** What is known of nodes besides the results that are stored: by cluster of purges, by task and cluster of prefetches. */
export interface NodesNow {
  nodes: ReadonlyMap<string, PurgeNodes>;
  prefetches: ReadonlyMap<string, CacheTaskNode[]>;
}

/** The tasks as of now. */
export async function presentTasks(sql: Sql, tasks: readonly CacheTaskRow[], now = new Date()): Promise<CacheTask[]> {
  const clusters = [
    ...new Set(tasks.flatMap(({ places }) => places.filter(isMoving).map(({ clusterId }) => clusterId))),
  ];
  const nodes = new Map<string, PurgeNodes>();
  for (const id of clusters) nodes.set(id, await readPurgeNodes(sql, id));
  const prefetches = await readPrefetches(sql, tasks);
  return tasks.map((task) => presentTask(task, { nodes, prefetches }, now));
}

/** Results of the prefetches among the tasks that are not stored with them yet. */
export async function readPrefetches(
  sql: Sql,
  tasks: readonly CacheTaskRow[],
): Promise<ReadonlyMap<string, CacheTaskNode[]>> {
  const open = tasks.filter((task) => isPrefetch(task) && task.places.some(({ nodes }) => nodes === null));
  const found = new Map<string, CacheTaskNode[]>();
  for (const row of await prefetchesOf(
    sql,
    open.map(({ id }) => id),
  )) {
    const key = keyOf(row.taskId, row.clusterId);
    found.set(key, [...(found.get(key) ?? []), prefetchNow(row)]);
  }
  return found;
}

function keyOf(taskId: string, clusterId: string): string {
  return `${taskId} ${clusterId}`;
}

function prefetchNow(row: PrefetchNow): CacheTaskNode {
  if (row.result) return row.result;
  return row.running ? progress(row, row.output) : resultOf(row, 'pending');
}

/** Whether results of it may be others than those that are stored. */
function isMoving({ nodes, sequence }: CacheTaskRow['places'][number]): boolean {
  return sequence > 0n && (nodes === null || nodes.some(({ errorCode }) => errorCode === 'task_expired'));
}

export function isPrefetch({ type }: Pick<CacheTask, 'type'>): boolean {
  return type === 'prefetch' || type === 'sitemap';
}

/** `known`: the nodes of each cluster with a place that moves. */
export function presentTask(
  { places, createdAt, finishedAt, ...task }: CacheTaskRow,
  known: NodesNow,
  now: Date,
): CacheTask {
  const nodes = places.flatMap((place) => {
    if (isPrefetch(task)) return place.nodes ?? known.prefetches.get(keyOf(task.id, place.clusterId)) ?? [];
    const there = known.nodes.get(place.clusterId);
    if (place.nodes) return there ? place.nodes.map((result) => recovered(result, there, place)) : place.nodes;
    return there ? resultsAt(there, { ...task, ...place, createdAt }, now) : [];
  });
  const isEnded = nodes.every(isFinished);
  const state = isEnded ? endOf(nodes) : nodes.some(isFinished) ? 'running' : 'pending';
  const end = finishedAt ?? (isEnded ? (lastOf(nodes) ?? createdAt) : null);
  return { ...task, state, nodes, createdAt: createdAt.toISOString(), finishedAt: end?.toISOString() ?? null };
}

/** When the last node finished; null where that is not known of any. */
export function lastOf(nodes: readonly CacheTaskNode[]): Date | null {
  const times = nodes.flatMap(({ finishedAt }) => finishedAt ?? []);
  return times.length > 0 ? new Date(times.sort().at(-1)!) : null;
}

function endOf(nodes: readonly CacheTaskNode[]): 'succeeded' | 'failed' {
  return nodes.every(({ state }) => state !== 'failed') ? 'succeeded' : 'failed';
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
