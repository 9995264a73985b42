import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { CacheTask, cacheTasks } from '../../contract/resources/cache-tasks.ts';
import { cacheTaskById, cacheTaskCount, cacheTaskPage } from '../../models/cache/cache-task.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { presentTasks } from './present-task.ts';

const USUAL = 20;

export async function listCacheTasks(
  { pools }: Runtime,
  { siteId, ...input }: Input<typeof cacheTasks.list>,
): Promise<Output<typeof cacheTasks.list>> {
  const { limit, offset } = pageOf({ pageSize: USUAL, ...input });
  const [rows, total] = await Promise.all([
    cacheTaskPage(pools.api, siteId, limit, offset),
    cacheTaskCount(pools.api, siteId),
  ]);
  return { items: await presentTasks(pools.api, rows), total };
}

/** Throws CACHE_TASK_NOT_FOUND. */
export async function getCacheTask({ pools }: Runtime, { id }: Input<typeof cacheTasks.get>): Promise<CacheTask> {
  const row = (await cacheTaskById(pools.api, id)) ?? fail('CACHE_TASK_NOT_FOUND');
  const [task] = await presentTasks(pools.api, [row]);
  return task!;
}
