// Prefetches of nodes.
//
// | State    | Trigger                                              | Next                                    |
// | waits    | the node is online and has a place                   | handed out, as a task of the node       |
// | handed   | the task of the node finishes                        | the result                              |
// | handed   | the task of the node ends without a report           | waits; after the third time the result  |
// | both     | the node is disabled, lacks the capability, 7 days   | the result                              |
import type { Knex } from 'knex';
import type { Capability } from '../../contract/capabilities.ts';
import type { CacheTask, CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import { PURGE_DAYS } from './purge.ts';

export const PREFETCH_CAPABILITY: Capability = 'prefetch-v2';
/** Prefetches that a node has at a time; other tasks have the rest of its places. */
const PER_NODE = 2;
/** How many are looked at in one go. */
const BATCH = 500;

/** Has all nodes of a cluster do a prefetch. */
export async function addPrefetches(sql: Knex, taskId: string, clusterId: string): Promise<void> {
  await sql.raw(
    'insert into prefetch_node (task_id, node_id, cluster_id) select ?, id, cluster_id from node where cluster_id = ?',
    [taskId, clusterId],
  );
}

/** One that something is to be done about. */
export interface DuePrefetch {
  taskId: string;
  type: CacheTask['type'];
  id: string;
  name: string;
  active: boolean;
  able: boolean;
  online: boolean;
  old: boolean;
  tries: number;
  /** The task of the node; null while it waits. */
  nodeTaskId: string | null;
  /** Null: it has not ended. "gone": it is not known any more. */
  code: string | null;
  output: Buffer | null;
  finishedAt: Date | null;
}

export async function duePrefetches(sql: Knex): Promise<DuePrefetch[]> {
  const { rows } = await sql.raw<{ rows: DuePrefetch[] }>(
    `select * from (
       select p.task_id as "taskId", t.type, n.id, n.name, n.status = 'active' as active,
           :capability = any(coalesce(s.features, '{}')) as able,
           coalesce(s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}), false) as online,
           t.created_at < now() - interval '${PURGE_DAYS} days' as old, p.tries, p.node_task_id as "nodeTaskId",
           case when p.node_task_id is not null and k.id is null then 'gone' when k.finished_at is not null then k.code end as code,
           k.output, k.finished_at as "finishedAt",
           row_number() over (partition by n.id order by p.node_task_id is null, p.task_id) as place
         from prefetch_node p join cache_task t on t.id = p.task_id join node n on n.id = p.node_id
           left join node_state s on s.node_id = n.id left join node_task k on k.id = p.node_task_id
        where p.result is null) d
      where code is not null or not active or not able or old or (online and "nodeTaskId" is null and place <= ${PER_NODE})
      order by "taskId", id limit ${BATCH}`,
    { capability: PREFETCH_CAPABILITY },
  );
  return rows;
}

type Which = Pick<DuePrefetch, 'taskId' | 'id' | 'nodeTaskId'>;

/** Notes the task that a node has, or that it waits again; nothing where it was changed meanwhile. */
export async function setNodeTask(sql: Knex, { taskId, id, nodeTaskId }: Which, next: string | null): Promise<boolean> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `update prefetch_node set node_task_id = :next, tries = tries + (:next::text is not null)::int
      where task_id = :taskId and node_id = :id and result is null and node_task_id is not distinct from :before`,
    { taskId, id, next: next as never, before: nodeTaskId as never },
  );
  return rowCount === 1;
}

export async function setPrefetchResult(sql: Knex, { taskId, id }: Which, result: CacheTaskNode): Promise<void> {
  await sql.raw('update prefetch_node set result = ? where task_id = ? and node_id = ? and result is null', [
    JSON.stringify(result),
    taskId,
    id,
  ]);
}

/** Places of prefetches whose results are all there. */
export async function finishedPrefetches(
  sql: Knex,
): Promise<{ taskId: string; clusterId: string; nodes: CacheTaskNode[] }[]> {
  const { rows } = await sql.raw<{ rows: { taskId: string; clusterId: string; nodes: CacheTaskNode[] }[] }>(
    `select p.task_id as "taskId", p.cluster_id as "clusterId",
        coalesce(jsonb_agg(r.result order by r.result->>'nodeName', r.node_id) filter (where r.result is not null), '[]') as nodes
       from cache_task_place p left join prefetch_node r on r.task_id = p.task_id and r.cluster_id = p.cluster_id
      where p.nodes is null and p.seq = 0 group by p.task_id, p.cluster_id
     having bool_and(r.task_id is null or r.result is not null) limit ${BATCH}`,
  );
  return rows;
}

/** A prefetch as it stands. */
export interface PrefetchNow {
  taskId: string;
  clusterId: string;
  id: string;
  name: string;
  result: CacheTaskNode | null;
  running: boolean;
  /** How far it is. */
  output: Buffer | null;
}

export async function prefetchesOf(sql: Knex, taskIds: readonly string[]): Promise<PrefetchNow[]> {
  if (taskIds.length === 0) return [];
  const { rows } = await sql.raw<{ rows: PrefetchNow[] }>(
    `select p.task_id as "taskId", p.cluster_id as "clusterId", n.id, n.name, p.result,
        coalesce(k.attempts > 0, false) as running, k.output
       from prefetch_node p join node n on n.id = p.node_id left join node_task k on k.id = p.node_task_id
      where p.task_id = any(?) order by n.name, n.id`,
    [taskIds as never],
  );
  return rows;
}

/** What a node is to fetch of a task; undefined where it is none of the node's. */
export async function prefetchOfNode(
  sql: Knex,
  nodeId: string,
  taskId: string,
): Promise<Pick<CacheTask, 'type' | 'targets' | 'variants' | 'maxUrls'> | undefined> {
  const { rows } = await sql.raw<{ rows: Pick<CacheTask, 'type' | 'targets' | 'variants' | 'maxUrls'>[] }>(
    `select t.type, t.targets, t.variants, t.max_urls as "maxUrls"
       from prefetch_node p join cache_task t on t.id = p.task_id where p.task_id = ? and p.node_id = ?`,
    [taskId, nodeId],
  );
  return rows[0];
}
