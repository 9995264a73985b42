// Tasks for nodes. A service folder registers a kind in `<name>.task.ts`; the agent has a kind of the same name.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Capability } from '../contract/capabilities.ts';
import { fail } from '../contract/errors.ts';
import {
  addNodeTask,
  endNodeTask,
  type FinishedTask,
  readFinishedTask,
  readTaskNode,
} from '../models/nodes/node-task.ts';
import { announceNodeTask } from '../runtime/node-tasks.ts';
import type { Runtime } from '../runtime/runtime.ts';

const TASKS: Capability = 'tasks-v1';
const FIRST_LOOK_MS = 50;
const LONGEST_PAUSE_MS = 250;

/** Result codes of tasks of every kind. */
export const TASK_CODES = ['', 'task_unsupported', 'task_failed'] as const;

export interface NodeTaskKind<I, O> {
  /** Of one kind only. */
  readonly name: string;
  /** A node that has not reported within this time loses the task, and it is handed out again. */
  readonly leaseMs: number;
  /** The result is of no use afterwards. */
  readonly expireMs: number;
  /** Result codes beyond {@link TASK_CODES}. */
  readonly codes: readonly string[];
  encode(input: I): Uint8Array;
  /** Throws for bytes that are no output of the kind. */
  decode(output: Uint8Array): O;
}

/** The name of a node that can take tasks. Throws NODE_NOT_FOUND, NODE_OFFLINE and NODE_CAPABILITY_REQUIRED. */
export async function assertTakesTasks({ pools }: Runtime, nodeId: string): Promise<string> {
  const { name, reachable, features } = (await readTaskNode(pools.api, nodeId)) ?? fail('NODE_NOT_FOUND');
  if (!reachable) fail('NODE_OFFLINE', { node: name });
  if (!features.includes(TASKS)) fail('NODE_CAPABILITY_REQUIRED', { features: TASKS, nodes: name });
  return name;
}

/**
 * Has a node do a task, and waits for its output. Throws NODE_NOT_FOUND, NODE_OFFLINE (also when it does not report in time),
 * NODE_CAPABILITY_REQUIRED, NODE_TASK_FAILED with the result code, and SERVICE_UNAVAILABLE when too many of its tasks wait.
 */
export async function runNodeTask<I, O>(
  runtime: Runtime,
  kind: NodeTaskKind<I, O>,
  nodeId: string,
  input: I,
): Promise<O> {
  const sql = runtime.pools.api;
  const node = await assertTakesTasks(runtime, nodeId);
  const { name, leaseMs, expireMs } = kind;
  const task = { nodeId, kind: name, input: kind.encode(input), leaseMs, expireMs };
  const id = (await addNodeTask(sql, task)) ?? fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 5 });
  announceNodeTask(runtime, nodeId);
  const finished = await finish(runtime, id, expireMs);
  if (!finished || finished.code === 'task_expired') fail('NODE_OFFLINE', { node });
  if (finished.code !== '') fail('NODE_TASK_FAILED', { node, code: finished.code });
  return kind.decode(finished.output ?? new Uint8Array());
}

/** Null: the node has not reported within `longestMs`. */
async function finish(runtime: Runtime, id: string, longestMs: number): Promise<FinishedTask | null> {
  const sql = runtime.pools.api;
  const until = performance.now() + longestMs;
  for (let pause = FIRST_LOOK_MS; performance.now() < until; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    await sleep(pause, undefined, { signal: runtime.stopping }).catch(() =>
      fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 }),
    );
    const finished = await readFinishedTask(sql, id);
    if (finished) return finished;
  }
  await endNodeTask(sql, id);
  return readFinishedTask(sql, id);
}
