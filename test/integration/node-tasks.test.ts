// Tasks for nodes: leased to one node, reported once, handed out again when a lease ends, ended when they expire. The first kind
// is the test of an origin from a node.
import { create, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import {
  addNodeTask,
  expireNodeTasks,
  MAX_OPEN_TASKS,
  nodesWithTasks,
  readFinishedTask,
} from '../../models/nodes/node-task.ts';
import { OriginTestInputSchema, OriginTestOutputSchema, type Task } from '../../proto/gen/svc/node/v1/tasks_pb.js';
import type { TestConsole } from '../helpers/console.ts';
import { startEdgeNode } from '../helpers/edge-node.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalOrigin, startNodeConsole } from '../helpers/local-edge.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;

test.before('start', async () => {
  running = await startNodeConsole();
  api = new Api(running);
  clusterId = await api.cluster('tasks');
});
test.after.always('stop', () => running?.stop());

const sql = () => running.running.runtime.pools.api;
const KIND = { kind: 'origin-test', input: new Uint8Array([8]), leaseMs: 60_000, expireMs: 600_000 };

async function enrolled(t: ExecutionContext, features = ['bans-v1', 'tasks-v1']): Promise<ReportingNode> {
  const node = await ReportingNode.enroll(running, clusterId, features);
  t.teardown(() => node.stop());
  await node.beat();
  return node;
}

const add = async (node: { id: string }, more: Partial<typeof KIND> = {}): Promise<string> => {
  const id = await addNodeTask(sql(), { ...KIND, ...more, nodeId: node.id });
  if (id === null) throw new Error('too many tasks are open');
  return id;
};
const take = async (node: ReportingNode, limit = 10): Promise<readonly Task[]> =>
  (await node.connection.call('takeTasks', { limit })).tasks;
const report = async (node: ReportingNode, ...results: Body[]): Promise<readonly string[]> =>
  (await node.connection.call('reportTasks', { results })).refused;
const endLease = (id: string) =>
  sql()('node_task')
    .where({ id })
    .update({ leased_until: new Date(Date.now() - 1000) });

test('a task is taken by its node alone, once within its lease, and reported once', async (t) => {
  const [node, other] = [await enrolled(t), await enrolled(t)];
  const [first, second] = [await add(node), await add(node)];
  t.deepEqual(await take(other), []);
  const [taken] = await take(node, 1);
  t.like(taken, { id: first, attempt: 1, kind: 'origin-test', leaseMs: 60_000 });
  t.deepEqual([...taken!.input], [8]);
  t.deepEqual(
    (await take(node)).map(({ id }) => id),
    [second],
  );
  t.deepEqual(await take(node), []);
  const output = new Uint8Array([1, 2]);
  t.deepEqual(await report(other, { id: first, attempt: 1, output }), [first], 'a task of another node');
  t.deepEqual(await report(node, { id: first, attempt: 1, output }), []);
  t.deepEqual(await report(node, { id: first, attempt: 1, code: 'task_failed' }), [first], 'a second report');
  t.deepEqual(await readFinishedTask(sql(), first), { code: '', output: Buffer.from(output) });
  const unknown = { id: second, attempt: 1, code: 'made_up', output };
  t.deepEqual(await report(node, unknown, { id: 'nowhere', attempt: 1 }), ['nowhere']);
  t.like(await readFinishedTask(sql(), second), { code: 'task_failed' });
});

test('a task whose lease ended is handed out again; the former attempt reports nothing', async (t) => {
  const node = await enrolled(t);
  const id = await add(node);
  for (const attempt of [1, 2]) {
    t.like((await take(node))[0], { id, attempt });
    await endLease(id);
    t.true((await nodesWithTasks(running.running.runtime.pools.channel)).includes(node.id) === attempt < 3);
  }
  t.like((await take(node))[0], { id, attempt: 3 });
  t.deepEqual(await report(node, { id, attempt: 1 }), [id]);
  await endLease(id);
  t.deepEqual(await take(node), [], 'a third lease is the last one');
  await expireNodeTasks(sql());
  t.like(await readFinishedTask(sql(), id), { code: 'task_expired' });
  t.deepEqual(await report(node, { id, attempt: 3 }), [id]);
});

test('a task that expired is not handed out, and its report is refused', async (t) => {
  const node = await enrolled(t);
  const [waiting, leased] = [await add(node), await add(node)];
  await sql()('node_task').where({ id: waiting }).update({ created_at: new Date() });
  t.is((await take(node, 1))[0]!.id, leased);
  await sql()('node_task')
    .where({ node_id: node.id })
    .update({ expires_at: new Date(Date.now() - 1000) });
  t.deepEqual(await take(node), []);
  t.deepEqual(await report(node, { id: leased, attempt: 1 }), [leased]);
  await expireNodeTasks(sql());
  for (const id of [waiting, leased]) t.like(await readFinishedTask(sql(), id), { code: 'task_expired' });
});

test('the open tasks of a node are bounded', async (t) => {
  const node = await enrolled(t);
  for (let count = 0; count < MAX_OPEN_TASKS; count++) await add(node);
  t.is(await addNodeTask(sql(), { ...KIND, nodeId: node.id }), null);
  await sql()('node_task').where({ node_id: node.id }).delete();
});

test('a test of an origin from a node returns what the node reports, and names a node that cannot', async (t) => {
  const ask = (id: string) => api.call('POST', `/nodes/${id}/origins/try`, { origin: { address: 'a.example' } });
  t.is((await ask('nowhere')).body.code, 'NODE_NOT_FOUND');
  const old = await enrolled(t, ['bans-v1']);
  const isOnline = (id: string) => api.ok('GET', `/nodes/${id}`).then(({ online }) => online);
  await eventually(() => isOnline(old.id));
  t.like((await ask(old.id)).body, { code: 'NODE_CAPABILITY_REQUIRED', data: { features: 'tasks-v1' } });
  const node = await enrolled(t);
  await eventually(() => isOnline(node.id));
  // The node hears of the task on its stream, and does each in turn.
  const replies: Body[] = [
    {
      output: toBinary(
        OriginTestOutputSchema,
        create(OriginTestOutputSchema, {
          steps: [
            { step: 'address', milliseconds: 3 },
            { step: 'connect', milliseconds: 4, failure: 'refused' },
          ],
          address: '192.0.2.1',
        }),
      ),
    },
    { code: 'task_unsupported' },
  ];
  const stream = node.connection.watch(
    {},
    () =>
      void take(node).then(async (tasks) => {
        for (const { id, attempt } of tasks) await report(node, { id, attempt, ...replies.shift() });
      }),
    () => undefined,
  );
  t.teardown(() => stream.destroy());
  t.deepEqual((await ask(node.id)).body, {
    steps: [
      { step: 'address', milliseconds: 3, failure: null },
      { step: 'connect', milliseconds: 4, failure: 'refused' },
    ],
    address: '192.0.2.1',
    range: null,
    status: null,
  });
  t.like((await ask(node.id)).body, { code: 'NODE_TASK_FAILED', data: { code: 'task_unsupported' } });
  stream.destroy();
  t.like((await ask(node.id)).body, { code: 'NODE_OFFLINE' }, 'a node that does not report in time');
  await node.fallSilent();
  t.like((await ask(node.id)).body, { code: 'NODE_OFFLINE' });
});

test('a real node tests an origin under its address policy; a killed agent loses the task, and the next one does it', async (t) => {
  let silent = true;
  let asked = 0;
  const origin = await startLocalOrigin(t, api, (_request, response) => {
    asked += 1;
    if (!silent) response.writeHead(204).end();
  });
  const listen = `127.0.0.1:${await freePort()}`;
  const edge = await startEdgeNode({ client: running.client, clusterId, listen, kernelBans: 'off' });
  t.teardown(async () => {
    if (!t.passed) for (const line of edge.log().split('\n').slice(-40)) t.log(line);
    await edge.stop();
  });
  const { address, port } = origin;
  const ask = () => api.call('POST', `/nodes/${edge.nodeId}/origins/try`, { origin: { address, port } });
  const input = create(OriginTestInputSchema, { address, port, path: '/', timeoutMs: 30_000 });
  // The allow list reaches the node as configuration.
  const follows = () =>
    eventually(async () => {
      const { applyState, appliedRevision, targetRevision } = await api.ok('GET', `/nodes/${edge.nodeId}`);
      return applyState === 'applied' && appliedRevision === targetRevision;
    });
  await follows();
  silent = false;
  t.like((await ask()).body, { address, status: 204 });
  silent = true;
  asked = 0;
  const id = await add({ id: edge.nodeId }, { input: toBinary(OriginTestInputSchema, input), leaseMs: 30_000 });
  await eventually(() => asked === 1, { what: 'the node to do the task' });
  process.kill(edge.pids()!.agent, 'SIGKILL');
  silent = false;
  await endLease(id);
  const finished = await eventually(async () => (await readFinishedTask(sql(), id)) ?? false, {
    timeoutMs: 60_000,
    what: 'the next attempt',
  });
  t.is(finished!.code, '');
  t.like(await sql()('node_task').where({ id }).first(), { attempts: 2 });
  t.is(asked, 2);
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: [] });
  await follows();
  t.like((await ask()).body, {
    address,
    range: '127.0.0.0/8',
    status: null,
    steps: [{ step: 'address', failure: 'forbidden' }],
  });
});
