// Cache tasks as they are stored: what was asked for, where it is in the feed of each cluster, and what became of it.
import type { Knex } from 'knex';
import type { CacheTask, CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';
import type { PurgePlace } from './purge.ts';

export interface NewCacheTask
  extends Pick<CacheTask, 'type' | 'targets' | 'sites' | 'variants' | 'maxUrls' | 'source'> {
  createdByName: string;
}

/** Where a task is in the feed of a cluster. `nodes`: its results there; null until all are there. */
export interface TaskPlace extends PurgePlace {
  clusterId: string;
  nodes: CacheTaskNode[] | null;
}

export interface CacheTaskRow extends NewCacheTask {
  id: string;
  createdAt: Date;
  finishedAt: Date | null;
  places: TaskPlace[];
}

/** Inserts a task that has no places yet; returns its id. */
export async function insertCacheTask(sql: Knex, task: NewCacheTask, now: Date): Promise<string> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    `with made as (
       insert into cache_task (type, targets, sites, variants, max_urls, source, created_by_name, created_at)
       values (:type, :targets, :sites, :variants, :maxUrls, :source, :createdByName, :now) returning id
     ), linked as (
       insert into cache_task_site (site_id, task_id) select s.id, made.id from made, site s where s.id = any(:siteIds)
     )
     select id from made`,
    {
      type: task.type,
      targets: task.targets as never,
      sites: JSON.stringify(task.sites),
      variants: task.variants as never,
      maxUrls: task.maxUrls as never,
      source: task.source,
      createdByName: task.createdByName,
      now,
      siteIds: task.sites.map(({ id }) => id) as never,
    },
  );
  return rows[0]!.id;
}

export async function insertTaskPlace(
  sql: Knex,
  taskId: string,
  { clusterId, epoch, sequence, nodes }: TaskPlace,
): Promise<void> {
  await sql.raw('insert into cache_task_place (task_id, cluster_id, epoch, seq, nodes) values (?, ?, ?, ?, ?)', [
    taskId,
    clusterId,
    String(epoch),
    String(sequence),
    (nodes && JSON.stringify(nodes)) as never,
  ]);
}

const SELECT = `
  select t.id, t.type, t.targets, t.sites, t.variants, t.max_urls as "maxUrls", t.source,
    t.created_by_name as "createdByName", t.created_at as "createdAt", t.finished_at as "finishedAt",
    coalesce((select jsonb_agg(jsonb_build_object('clusterId', p.cluster_id, 'epoch', p.epoch::text, 'sequence', p.seq::text,
      'nodes', p.nodes) order by p.cluster_id) from cache_task_place p where p.task_id = t.id), '[]') as places`;

type Stored = Omit<CacheTaskRow, 'places'> & {
  places: (Omit<TaskPlace, 'epoch' | 'sequence'> & { epoch: string; sequence: string })[];
};

export async function cacheTaskById(sql: Knex, id: string): Promise<CacheTaskRow | undefined> {
  const { rows } = await sql.raw<{ rows: Stored[] }>(`${SELECT} from cache_task t where t.id = ?`, [id]);
  return rows[0] && taskOf(rows[0]);
}

/** Tasks, newest first; of one site where its id is given. */
export async function cacheTaskPage(
  sql: Knex,
  siteId: string | undefined,
  limit: number,
  offset: number,
): Promise<CacheTaskRow[]> {
  const { rows } = await sql.raw<{ rows: Stored[] }>(
    siteId === undefined
      ? `${SELECT} from cache_task t order by t.id desc limit ? offset ?`
      : `${SELECT} from (select task_id from cache_task_site where site_id = ? order by task_id desc limit ? offset ?) s
         join cache_task t on t.id = s.task_id order by t.id desc`,
    siteId === undefined ? [limit, offset] : [siteId, limit, offset],
  );
  return rows.map(taskOf);
}

export async function cacheTaskCount(sql: Knex, siteId: string | undefined): Promise<number> {
  const { rows } = await sql.raw<{ rows: { total: number }[] }>(
    siteId === undefined
      ? 'select count(*)::int as total from cache_task'
      : 'select count(*)::int as total from cache_task_site where site_id = ?',
    siteId === undefined ? [] : [siteId],
  );
  return rows[0]!.total;
}

function taskOf({ places, ...task }: Stored): CacheTaskRow {
  return {
    ...task,
    places: places.map(({ epoch, sequence, ...rest }) => ({
      ...rest,
      epoch: BigInt(epoch),
      sequence: BigInt(sequence),
    })),
  };
}

/** A place whose results are not all there. */
export interface OpenPlace extends PurgePlace {
  taskId: string;
  clusterId: string;
  type: CacheTask['type'];
  createdAt: Date;
}

/** Clusters with purges whose places are open. Prefetches have none in the feed. */
export async function clustersWithOpenPlaces(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    'select id from cluster c where exists (select from cache_task_place p where p.cluster_id = c.id and p.nodes is null and p.seq > 0)',
  );
  return rows.map(({ id }) => id);
}

/** The first open places of a cluster in the order of the feed. */
export async function openPlaces(sql: Knex, clusterId: string): Promise<OpenPlace[]> {
  const { rows } = await sql.raw<{ rows: (Omit<OpenPlace, 'epoch' | 'sequence'> & { epoch: string; seq: string })[] }>(
    `select p.task_id as "taskId", p.cluster_id as "clusterId", p.epoch, p.seq, t.type, t.created_at as "createdAt"
       from cache_task_place p join cache_task t on t.id = p.task_id
      where p.cluster_id = ? and p.nodes is null and p.seq > 0 order by p.seq limit ${SWEEP_BATCH}`,
    [clusterId],
  );
  return rows.map(({ epoch, seq, ...row }) => ({ ...row, epoch: BigInt(epoch), sequence: BigInt(seq) }));
}

/** Stores the results of places, `at` when they were there, and ends the tasks that have no open place any more. */
export async function settlePlaces(
  sql: Knex,
  places: readonly { taskId: string; clusterId: string; nodes: CacheTaskNode[]; at: Date }[],
): Promise<void> {
  if (places.length === 0) return;
  await sql.raw(
    `with given as (
       select * from jsonb_to_recordset(:places::jsonb) as v("taskId" text, "clusterId" text, nodes jsonb, at timestamptz)
     ), settled as (
       update cache_task_place p set nodes = v.nodes from given v
        where p.task_id = v."taskId" and p.cluster_id = v."clusterId" and p.nodes is null returning p.task_id, p.cluster_id
     )
     update cache_task t set finished_at = (select max(at) from given where "taskId" = t.id) where t.finished_at is null and t.id in (select task_id from settled)
       and not exists (select from cache_task_place p where p.task_id = t.id and p.nodes is null
         and not exists (select from settled s where s.task_id = p.task_id and s.cluster_id = p.cluster_id))`,
    { places: JSON.stringify(places) },
  );
}

/** Tasks are kept for 90 days. */
export async function purgeCacheTasks(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from cache_task where id = any(array(
       select id from cache_task where created_at < now() - interval '90 days' limit ${SWEEP_BATCH} for update skip locked))`,
  );
  return rowCount;
}
