import { settlePlaces } from '../../models/cache/cache-task.ts';
import { expired, skipped, unsupported } from '../../models/cache/node-result.ts';
import {
  type DuePrefetch,
  duePrefetches,
  finishedPrefetches,
  setNodeTask,
  setPrefetchResult,
} from '../../models/cache/prefetch-node.ts';
import { broken, finished, timedOut } from '../../models/cache/prefetch-result.ts';
import { addNodeTask, endNodeTask } from '../../models/nodes/node-task.ts';
import { announceNodeTask } from '../../runtime/node-tasks.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { prefetchTask } from './prefetch.task.ts';
import { lastOf } from './present-task.ts';

/** How often a node gets a prefetch that it does not report on. */
const MAX_TRIES = 3;

/** Hands prefetches out to nodes that can do them, and stores what became of them. */
export async function advancePrefetches(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const sql = runtime.pools.api;
  for (const due of await duePrefetches(sql)) {
    if (signal.aborted) return;
    await advance(runtime, due);
  }
  const ended = await finishedPrefetches(sql);
  await settlePlaces(
    sql,
    ended.map((place) => ({ ...place, at: lastOf(place.nodes) ?? new Date() })),
  );
}

async function advance(runtime: Runtime, due: DuePrefetch): Promise<void> {
  const sql = runtime.pools.api;
  const result = resultNow(runtime, due);
  if (result) {
    if (due.nodeTaskId !== null && due.code === null) await endNodeTask(sql, due.nodeTaskId);
    await setPrefetchResult(sql, due, result);
  } else if (due.nodeTaskId !== null) await setNodeTask(sql, due, null);
  else await handOut(runtime, due);
}

/** Undefined: it waits, or waits again. */
function resultNow({ log }: Runtime, due: DuePrefetch): ReturnType<typeof skipped> | undefined {
  const now = new Date();
  const { code, output, finishedAt } = due;
  if (code === 'task_unsupported') return unsupported(due, due.type);
  if (code === 'task_failed') return broken(due, finishedAt ?? now);
  if (code === '') {
    try {
      return finished(due, prefetchTask.decode(output ?? new Uint8Array()), finishedAt ?? now);
    } catch (err) {
      log.warn({ err, nodeId: due.id }, 'result of a prefetch not readable');
      return broken(due, finishedAt ?? now);
    }
  }
  if (!due.active) return skipped(due);
  if (!due.able) return unsupported(due, due.type);
  if (due.old) return expired(due, 'Create the task again.');
  return code !== null && due.tries >= MAX_TRIES ? timedOut(due, output, now) : undefined;
}

async function handOut(runtime: Runtime, due: DuePrefetch): Promise<void> {
  const sql = runtime.pools.api;
  const { name, leaseMs, expireMs } = prefetchTask;
  const input = prefetchTask.encode(due.taskId);
  const id = await addNodeTask(sql, { nodeId: due.id, kind: name, input, leaseMs, expireMs });
  if (id === null) return;
  if (await setNodeTask(sql, due, id)) announceNodeTask(runtime, due.id);
  else await endNodeTask(sql, id);
}
