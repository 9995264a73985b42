// The calls with which nodes take tasks and report on them.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { type NodeTaskKind, TASK_CODES } from '../../../mixins/node-task.ts';
import {
  kindsOfTasks,
  MAX_TASK_BYTES,
  type ReportedTask,
  reportNodeTasks,
  reportProgress,
  takeNodeTasks,
} from '../../../models/nodes/node-task.ts';
import type {
  ReportTasksRequest,
  ReportTasksResponseSchema,
  TakeTasksRequest,
  TakeTasksResponseSchema,
  TaskResult,
} from '../../../proto/gen/svc/node/v1/tasks_pb.js';
import { NODE_TASKS } from '../../gen/node-tasks.ts';
import type { CallContext } from '../calls.ts';
import type { NodeIdentity } from '../identity.ts';

/** Tasks that a node takes, or reports on, at once. */
const MAX_AT_ONCE = 10;
const MAX_ATTEMPT = 1_000;

const CODES = codesOf(NODE_TASKS);

export async function takeTasks(
  { runtime, pulls }: CallContext,
  { nodeId }: NodeIdentity,
  { limit }: TakeTasksRequest,
): Promise<MessageInitShape<typeof TakeTasksResponseSchema>> {
  const most = Math.min(Math.max(limit, 1), MAX_AT_ONCE);
  return { tasks: await pulls.take(nodeId, () => takeNodeTasks(runtime.pools.channel, nodeId, most)) };
}

/** Stores each result once, and how far tasks are that go on; refuses those of other nodes and of attempts that have ended. */
export async function reportTasks(
  { runtime, pulls }: CallContext,
  { nodeId }: NodeIdentity,
  { results }: ReportTasksRequest,
): Promise<MessageInitShape<typeof ReportTasksResponseSchema>> {
  if (results.length > MAX_AT_ONCE) {
    throw new ConnectError(`a report contains at most ${MAX_AT_ONCE} results`, Code.InvalidArgument);
  }
  // Of several results of one task the first counts.
  const given = [...new Map(results.toReversed().map((result) => [result.id, result])).values()];
  if (given.length === 0) return {};
  const finished = await pulls.take(nodeId, async () => {
    const ids = given.map(({ id }) => id);
    const kinds = await kindsOfTasks(runtime.pools.channel, nodeId, ids);
    const own = given.flatMap((result) => readResult(result, kinds.get(result.id)));
    const isRunning = new Set(given.filter(({ running }) => running).map(({ id }) => id));
    return new Set([
      ...(await reportProgress(
        runtime.pools.channel,
        nodeId,
        own.filter(({ id }) => isRunning.has(id)),
      )),
      ...(await reportNodeTasks(
        runtime.pools.channel,
        nodeId,
        own.filter(({ id }) => !isRunning.has(id)),
      )),
    ]);
  });
  return { refused: given.map(({ id }) => id).filter((id) => !finished.has(id)) };
}

/** Nodes are authenticated, not trusted: a code that the kind does not have, or a large output, is a failure. */
function readResult({ id, attempt, code, output }: TaskResult, kind: string | undefined): ReportedTask[] {
  if (kind === undefined || attempt > MAX_ATTEMPT) return [];
  const known = CODES.get(kind)?.has(code) && output.length <= MAX_TASK_BYTES;
  return [known ? { id, attempt, code, output } : { id, attempt, code: 'task_failed', output: new Uint8Array() }];
}

/** Throws where two kinds have one name. */
function codesOf(kinds: readonly Pick<NodeTaskKind<never, unknown>, 'name' | 'codes'>[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { name, codes } of kinds) {
    if (found.has(name)) throw new Error(`two kinds of tasks have the name ${name}`);
    found.set(name, new Set([...TASK_CODES, ...codes]));
  }
  return found;
}
