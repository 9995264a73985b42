// Tasks for nodes.
//
// | State   | Trigger                                    | Next                                            |
// | waiting | the node takes it                          | leased, with the next attempt                   |
// | leased  | the node reports this attempt              | finished, with the node's code                  |
// | leased  | the lease ends                             | waiting; after the third attempt `task_expired` |
// | both    | `expires_at`, or the waiting client leaves | finished with `task_expired`                    |
//
// The attempt fences: a report of an earlier attempt, or a second one, changes nothing.
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { SWEEP_BATCH } from '../db/sweeps.ts';
import { ONLINE_SECONDS } from './node-state.ts';

/** Open tasks of one node, at most. */
export const MAX_OPEN_TASKS = 50;
/** Bytes of an input and of an output, at most. */
export const MAX_TASK_BYTES = 16 * 1024;
const MAX_ATTEMPTS = 3;

type Queries = Pick<Pool, 'query'>;

export interface NewTask {
  nodeId: string;
  kind: string;
  input: Uint8Array;
  leaseMs: number;
  expireMs: number;
}

/** Returns the id of the task; null if too many tasks of the node are open. */
export async function addNodeTask(
  sql: Knex,
  { nodeId, kind, input, leaseMs, expireMs }: NewTask,
): Promise<string | null> {
  const id = randomUUID();
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `insert into node_task (id, node_id, kind, input, lease_ms, expires_at)
     select :id, :nodeId, :kind, :input, :leaseMs::int, now() + :expireMs::int * interval '1 ms'
      where (select count(*) from node_task where node_id = :nodeId and finished_at is null) < ${MAX_OPEN_TASKS}`,
    { id, nodeId, kind, input: Buffer.from(input), leaseMs, expireMs },
  );
  return rowCount === 1 ? id : null;
}

export interface TakenTask {
  id: string;
  attempt: number;
  kind: string;
  input: Buffer;
  leaseMs: number;
}

/** Leases the oldest tasks that wait for the node. */
export async function takeNodeTasks(sql: Queries, nodeId: string, limit: number): Promise<TakenTask[]> {
  const { rows } = await sql.query<TakenTask>({
    name: 'take-node-tasks',
    text: `update node_task set attempts = attempts + 1, leased_until = now() + lease_ms * interval '1 ms'
            where id = any(array(
              select id from node_task
               where node_id = $1 and finished_at is null and expires_at > now() and attempts < ${MAX_ATTEMPTS}
                 and (leased_until is null or leased_until < now())
               order by created_at limit $2 for update skip locked))
           returning id, attempts as attempt, kind, input, lease_ms as "leaseMs"`,
    values: [nodeId, limit],
  });
  return rows;
}

export interface ReportedTask {
  id: string;
  attempt: number;
  code: string;
  output: Uint8Array;
}

/** The kinds of tasks of the node among these ids. */
export async function kindsOfTasks(sql: Queries, nodeId: string, ids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await sql.query<{ id: string; kind: string }>({
    name: 'kinds-of-node-tasks',
    text: 'select id, kind from node_task where node_id = $1 and id = any($2::text[])',
    values: [nodeId, ids],
  });
  return new Map(rows.map(({ id, kind }) => [id, kind]));
}

/** Finishes tasks of the node. Returns ids of the tasks that were finished; a result late for its lease counts until a new one begins. */
export async function reportNodeTasks(
  sql: Queries,
  nodeId: string,
  results: readonly ReportedTask[],
): Promise<Set<string>> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'report-node-tasks',
    text: `update node_task t set finished_at = now(), code = r.code, output = r.output
             from unnest($2::text[], $3::int[], $4::text[], $5::bytea[]) as r(id, attempt, code, output)
            where t.id = r.id and t.node_id = $1 and t.attempts = r.attempt and t.finished_at is null and t.expires_at > now()
           returning t.id`,
    values: [
      nodeId,
      results.map(({ id }) => id),
      results.map(({ attempt }) => attempt),
      results.map(({ code }) => code),
      results.map(({ output }) => Buffer.from(output)),
    ],
  });
  return new Set(rows.map(({ id }) => id));
}

/** Notes how far tasks of the node are. Returns ids of those that go on. */
export async function reportProgress(
  sql: Queries,
  nodeId: string,
  states: readonly ReportedTask[],
): Promise<Set<string>> {
  if (states.length === 0) return new Set();
  const { rows } = await sql.query<{ id: string }>({
    name: 'report-node-task-progress',
    text: `update node_task t set output = r.output from unnest($2::text[], $3::int[], $4::bytea[]) as r(id, attempt, output)
            where t.id = r.id and t.node_id = $1 and t.attempts = r.attempt and t.finished_at is null and t.expires_at > now()
           returning t.id`,
    values: [
      nodeId,
      states.map(({ id }) => id),
      states.map(({ attempt }) => attempt),
      states.map(({ output }) => Buffer.from(output)),
    ],
  });
  return new Set(rows.map(({ id }) => id));
}

export interface FinishedTask {
  /** '' = done. */
  code: string;
  output: Buffer | null;
}

/** Null while the task is open. */
export async function readFinishedTask(sql: Knex, id: string): Promise<FinishedTask | null> {
  const { rows } = await sql.raw<{ rows: FinishedTask[] }>(
    'select code, output from node_task where id = ? and finished_at is not null',
    [id],
  );
  return rows[0] ?? null;
}

/** Finishes an open task whose result nobody waits for any more. */
export async function endNodeTask(sql: Knex, id: string): Promise<void> {
  await sql.raw(
    `update node_task set finished_at = now(), code = 'task_expired' where id = ? and finished_at is null`,
    [id],
  );
}

/** Nodes for which tasks wait, at most 10,000. */
export async function nodesWithTasks(sql: Queries): Promise<string[]> {
  const { rows } = await sql.query<{ node_id: string }>({
    name: 'nodes-with-tasks',
    text: `select distinct node_id from node_task
            where finished_at is null and expires_at > now() and attempts < ${MAX_ATTEMPTS}
              and (leased_until is null or leased_until < now())
            limit 10000`,
  });
  return rows.map(({ node_id }) => node_id);
}

export interface TaskNode {
  name: string;
  reachable: boolean;
  features: readonly string[];
}

/** Whether a node can take tasks; undefined for one that does not exist. */
export async function readTaskNode(sql: Knex, id: string): Promise<TaskNode | undefined> {
  const { rows } = await sql.raw<{ rows: TaskNode[] }>(
    `select n.name, coalesce(s.features, '{}') as features,
            n.status = 'active' and coalesce(s.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS}), false) as reachable
       from node n left join node_state s on s.node_id = n.id where n.id = ?`,
    [id],
  );
  return rows[0];
}

/** Tasks that expired, or whose last lease ended. */
export async function expireNodeTasks(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `update node_task set finished_at = now(), code = 'task_expired' where id = any(array(
       select id from node_task
        where finished_at is null and (expires_at <= now() or (attempts >= ${MAX_ATTEMPTS} and leased_until < now()))
        limit ${SWEEP_BATCH} for update skip locked))`,
  );
  return rowCount;
}

/** Finished tasks are kept for a day. */
export async function purgeNodeTasks(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from node_task where id = any(array(
       select id from node_task where finished_at < now() - interval '1 day' limit ${SWEEP_BATCH} for update skip locked))`,
  );
  return rowCount;
}
