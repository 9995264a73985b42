// Following a change home, revisions of a cluster, delivery of sites: what people and scripts see of the pipeline.
import test from 'ava';
import { CallError } from '../../bin/lib/console-client.ts';
import { nextBanSeq, recordBanChange } from '../../models/bans/ban-numbers.ts';
import { readConfigHead } from '../../models/config/config-history.ts';
import { publish } from '../../models/config/publish.ts';
import { deliveryOf, situationNow } from '../../models/overview/delivery.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { listChanges } from '../../services/changes/changes.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { addCluster, ban, change } from '../helpers/pipeline.ts';

let console_: TestConsole;
let runtime: Runtime;
let serial = 0;

test.before(async () => {
  console_ = await startTestConsole();
  runtime = console_.running.runtime;
});
test.after.always(() => console_?.stop());

interface NodeFacts {
  status?: 'active' | 'disabled';
  /** Seconds since the last heartbeat; null = never connected. */
  seen?: number | null;
  revision?: bigint;
  sequence?: bigint;
  healthy?: boolean;
  failed?: { kind: string; id: string; running: boolean }[];
  missing?: string[];
  features?: string[];
}

/** A node as enrollment and heartbeats would leave it. */
async function addNode(clusterId: string, facts: NodeFacts = {}): Promise<string> {
  const {
    status = 'active',
    seen = 1,
    revision = 0n,
    sequence = 0n,
    healthy = true,
    failed = [],
    missing = [],
    features = [],
  } = facts;
  serial++;
  const sql = runtime.pools.api;
  const { epoch } = (await readConfigHead(runtime.pools.channel, clusterId))!;
  const group = await sql('node_group').where({ cluster_id: clusterId, is_default: true }).first();
  const [node] = await sql('node')
    .insert({ cluster_id: clusterId, node_group_id: group.id, name: `node-${String(serial).padStart(3, '0')}`, status })
    .returning('id');
  await sql('node_state').insert({
    node_id: node.id,
    last_seen_at: seen === null ? null : sql.raw('now() - make_interval(secs => ?)', [seen]),
    epoch: epoch.toString(),
    track: 'S',
    revision: revision.toString(),
    failed: JSON.stringify(failed),
    missing_features: missing,
    features,
    data_plane_healthy: healthy,
    applied_at: revision > 0n ? sql.fn.now() : null,
    ban_epoch: epoch.toString(),
    ban_sequence: sequence.toString(),
    bans_applied_at: sequence > 0n ? sql.fn.now() : null,
  });
  return node.id;
}

interface Change {
  id: string;
  kind: string;
  reason: string;
  clusterId: string | null;
  nodes: { total: number; applied: number; failed: number; offline: number };
  waiting: { id: string; online: boolean; reason: string }[];
  firstAppliedAt: string | null;
  done: boolean;
}

const progressOf = (id: string) => console_.client.api<Change>('GET', `/changes/${id}`);

async function saveSite(
  clusterId: string,
  patch: Record<string, unknown> = {},
): Promise<{ id: string; change: string }> {
  serial++;
  const name = `site-${serial}`;
  const answer = await console_.client.request<{ site: { id: string } }>(
    'POST',
    '/api/v1/sites',
    { clusterId, name, domains: [`${name}.example`], origins: [{ address: 'origin.example.net', port: 80 }], ...patch },
    { 'x-api-key': console_.client.accessKey },
  );
  if (answer.status !== 201) throw new CallError('POST /sites', answer);
  return { id: answer.body.site.id, change: answer.headers.get('x-svc-change')! };
}

test('a node that holds what changed is at its revision and has not applied it', async (t) => {
  const clusterId = await addCluster(runtime);
  const { change: id } = await saveSite(clusterId, { domains: [`.held-${serial}.example`] });
  const revision = BigInt(id.split('=')[1]!);
  await addNode(clusterId, { revision, features: ['domains-v2', 'partial-config-v1'] });
  const holding = await addNode(clusterId, { revision, features: ['partial-config-v1'], missing: ['domains-v2'] });
  const progress = await progressOf(id);
  t.deepEqual(progress.nodes, { total: 2, applied: 1, failed: 0, offline: 0 });
  t.deepEqual(
    progress.waiting.map(({ id: node, reason }) => ({ node, reason })),
    [{ node: holding, reason: 'capability_missing' }],
  );
  t.false(progress.done);
});

test('switching a site off reaches nodes that hold the site, and they serve it no more', async (t) => {
  const clusterId = await addCluster(runtime);
  const { id, change } = await saveSite(clusterId);
  const first = BigInt(change.split('=')[1]!);
  const node = await addNode(clusterId, { revision: first, features: ['partial-config-v1'] });
  const reach = (revision: bigint) =>
    runtime.pools.api('node_state').where({ node_id: node }).update({ revision: revision.toString() });
  const head = async () => (await readConfigHead(runtime.pools.channel, clusterId))!.revision;
  const of = async (enabled: boolean) =>
    (await deliveryOf(runtime.pools.api, [{ id, clusterId, enabled, updatedAt: new Date() }], situationNow)).get(id)!;
  await console_.client.api('PATCH', `/sites/${id}`, { domains: [`.off-${serial}.example`] });
  await reach(await head());
  const held = { kind: 'site', reason: 'lacking', capabilities: ['domains-v2'], count: 1 };
  const before = await of(true);
  t.like(before, { state: 'partial', totalNodes: 1, servingNodes: 1, currentNodes: 0 });
  t.like(before.blocked[0]!, held);

  await console_.client.api('PUT', `/sites/${id}/enabled`, { enabled: false });
  const off = await head();
  t.like(await of(false), { state: 'disabled', servingNodes: 1 }, 'the node does not know it yet');
  t.false((await progressOf(`${clusterId}=${off}`)).done);
  await reach(off);
  t.like(await of(false), { state: 'disabled', servingNodes: 0 });
  t.like(await progressOf(`${clusterId}=${off}`), { nodes: { total: 1, applied: 1 }, waiting: [], done: true });

  await console_.client.api('PUT', `/sites/${id}/enabled`, { enabled: true });
  await reach(await head());
  const again = await of(true);
  t.like(again, { state: 'partial', servingNodes: 1, currentNodes: 0 });
  t.like(again.blocked[0]!, held);
  // The node is upgraded: it applies what it held, and says so with its next heartbeat.
  await runtime.pools
    .api('node_state')
    .where({ node_id: node })
    .update({ features: ['domains-v2'] });
  t.like(await of(true), { state: 'live', servingNodes: 1, currentNodes: 1, blocked: [] });
});

test('a published change counts who runs it, who lags and why, and is done when every online node has it', async (t) => {
  const clusterId = await addCluster(runtime);
  const { id: siteId, change: id } = await saveSite(clusterId);
  const revision = BigInt(id.split('=')[1]!);
  t.is(id, `${clusterId}=${revision}`);
  await addNode(clusterId, { revision });
  await addNode(clusterId, { status: 'disabled' });
  const offline = await addNode(clusterId, { seen: 60, revision: revision - 1n });
  const never = await addNode(clusterId, { seen: null });
  const both = { offline: { id: offline, online: false }, never: { id: never, online: false } };
  let progress = await progressOf(id);
  t.like(progress, { id, kind: 'config', clusterId, reason: 'site_created', done: true });
  t.deepEqual(progress.nodes, { total: 3, applied: 1, failed: 0, offline: 2 });
  t.deepEqual(
    progress.waiting.map(({ id: node, online, reason }) => ({ node, online, reason })),
    [
      { node: both.offline.id, online: false, reason: 'offline' },
      { node: both.never.id, online: false, reason: 'never_connected' },
    ],
  );
  t.truthy(progress.firstAppliedAt);

  const behind = await addNode(clusterId, { revision: revision - 1n });
  const lacking = await addNode(clusterId, { revision: revision - 1n, missing: ['domains-v2'] });
  const sick = await addNode(clusterId, { revision: revision - 1n, healthy: false });
  const failed = await addNode(clusterId, { revision, failed: [{ kind: 'site', id: siteId, running: false }] });
  await addNode(clusterId, { revision, failed: [{ kind: 'site', id: 'another', running: false }] });
  progress = await progressOf(encodeURIComponent(id));
  t.deepEqual(progress.nodes, { total: 8, applied: 2, failed: 1, offline: 2 });
  t.false(progress.done);
  const reasons = new Map(progress.waiting.map((node) => [node.id, node.reason]));
  t.is(reasons.get(behind), 'behind');
  t.is(reasons.get(lacking), 'capability_missing');
  t.is(reasons.get(sick), 'data_plane_unhealthy');
  t.is(reasons.get(failed), 'entry_failed');
});

test('at most 20 waiting nodes are named, online ones first', async (t) => {
  const clusterId = await addCluster(runtime);
  const { change: id } = await saveSite(clusterId);
  for (let index = 0; index < 15; index++) await addNode(clusterId, { seen: 100 });
  for (let index = 0; index < 10; index++) await addNode(clusterId);
  const { waiting, nodes } = await progressOf(id);
  t.is(waiting.length, 20);
  t.deepEqual(
    waiting.map(({ online }) => online),
    [...Array(10).fill(true), ...Array(10).fill(false)],
  );
  t.deepEqual(nodes, { total: 25, applied: 0, failed: 0, offline: 15 });
});

test('a ban is followed by its number, and names nodes that could not hold it', async (t) => {
  const clusterId = await addCluster(runtime);
  const other = await addCluster(runtime);
  const seq = await ban(runtime, 'followed', '198.51.100.7/32', clusterId);
  const { epoch } = (await readConfigHead(runtime.pools.channel, clusterId))!;
  const id = `ban=${epoch}:${seq}`;
  await addNode(clusterId, { sequence: BigInt(seq) });
  await addNode(other, { sequence: 0n });
  t.like(await progressOf(id), { kind: 'ban', clusterId, reason: 'ban_created', done: true });
  const full = await addNode(clusterId, { sequence: BigInt(seq) + 5n });
  await runtime.pools.api('ban_unapplied').insert({ node_id: full, ban_id: 'followed' });
  await addNode(clusterId, { sequence: BigInt(seq) - 1n });
  const progress = await progressOf(encodeURIComponent(id));
  t.deepEqual(progress.nodes, { total: 3, applied: 1, failed: 1, offline: 0 });
  t.deepEqual(new Set(progress.waiting.map(({ reason }) => reason)), new Set(['ban_unapplied', 'behind']));
});

test('a ban everywhere concerns the nodes of every cluster, and its lift is a change of its own', async (t) => {
  const clusterId = await addCluster(runtime);
  await ban(runtime, 'everywhere', '198.51.100.8/32', null);
  const { changes } = await change(
    runtime,
    async (tx) => {
      const number = await nextBanSeq(tx);
      await tx.sql('ban').where({ id: 'everywhere' }).update({ lifted_at: tx.now, seq: number.seq });
      return recordBanChange(tx, {
        banId: 'everywhere',
        clusterId: null,
        keepUntil: new Date(Date.now() + 60_000),
        number,
      });
    },
    { pool: 'bans' },
  );
  await addNode(clusterId);
  const progress = await progressOf(changes[0]!);
  t.like(progress, { clusterId: null, reason: 'ban_lifted', done: false });
  const { rows } = await runtime.pools.api.raw("select count(*)::int as count from node where status = 'active'");
  t.true(progress.nodes.total > 0 && progress.nodes.total <= rows[0].count);
});

const REFUSED: [string, number, string][] = [
  ['nobody=1', 404, 'CHANGE_NOT_FOUND'],
  ['ban=1:1', 404, 'CHANGE_NOT_FOUND'],
  ['ban=1:99999999999999999', 404, 'CHANGE_NOT_FOUND'],
  ['ban=1', 404, 'CHANGE_NOT_FOUND'],
  ['x', 400, 'BAD_REQUEST'],
  ['a=b', 400, 'BAD_REQUEST'],
  ['a=1=2', 400, 'BAD_REQUEST'],
  ['ban=1:2:3', 400, 'BAD_REQUEST'],
  ['a=1234567890123456789012', 400, 'BAD_REQUEST'],
];
for (const [id, status, code] of REFUSED) {
  test(`the change ${id} and its nodes are answered ${code}`, async (t) => {
    for (const path of [id, `${id}/nodes`]) {
      const answer = await console_.client.request<{ code: string }>('GET', `/api/v1/changes/${path}`, undefined, {
        'x-api-key': console_.client.accessKey,
      });
      t.is(answer.status, status, path);
      t.is(answer.body.code, code, path);
    }
  });
}

test('nodes of a change are listed page by page, those that have not applied it first, with when or why not', async (t) => {
  const clusterId = await addCluster(runtime);
  const { change: id } = await saveSite(clusterId);
  const revision = BigInt(id.split('=')[1]!);
  const done = await addNode(clusterId, { revision });
  const offline = await addNode(clusterId, { seen: 100, revision: revision - 1n });
  const behind = await addNode(clusterId, { revision: revision - 1n });
  interface Arrivals {
    items: { id: string; state: string; reason: string | null; appliedAt: string | null }[];
    total: number;
  }
  const page = (query: string) => console_.client.api<Arrivals>('GET', `/changes/${id}/nodes${query}`);
  const { items, total } = await page('');
  t.is(total, 3);
  t.deepEqual(
    items.map(({ id: node, state, reason }) => ({ node, state, reason })),
    [
      { node: behind, state: 'waiting', reason: 'behind' },
      { node: offline, state: 'waiting', reason: 'offline' },
      { node: done, state: 'applied', reason: null },
    ],
  );
  t.regex(items[2]!.appliedAt ?? '', /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  t.deepEqual(
    (await page('?pageSize=1&page=3')).items.map(({ id: node }) => node),
    [done],
  );
  t.deepEqual(await page('?page=9'), { items: [], total: 3 });
});

test('the newest changes that somebody saved are listed, newest first: revisions and bans of people, none of nodes', async (t) => {
  const list = () => console_.client.api<{ items: { id: string; kind: string; actor: object }[] }>('GET', '/changes');
  const clusterId = await addCluster(runtime);
  const { change: site } = await saveSite(clusterId);
  const seq = await ban(runtime, 'listed', '198.51.100.77/32', clusterId);
  const byNode = await ban(runtime, 'by-a-node', '198.51.100.78/32', clusterId);
  await runtime.pools.api('ban').where({ id: 'by-a-node' }).update({ source: 'auto' });
  const { items } = await list();
  const at = (id: string) => items.findIndex((item) => item.id.endsWith(id));
  t.is(at(`:${byNode}`), -1);
  t.true(at(`:${seq}`) >= 0 && at(`:${seq}`) < at(site), JSON.stringify(items.map(({ id }) => id)));
  t.deepEqual(items[at(site)], await console_.client.api('GET', `/changes/${site}`));
  t.true(items.length <= 20);
});

test.serial('the list of changes makes as many queries for twenty changes as for a few', async (t) => {
  const sql = runtime.pools.api;
  const queriesOfList = async () => {
    let [count, listed] = [0, 0];
    const note = ({ sql: statement }: { sql: string }) => {
      // What is read of one change, or of many: the rest of the console asks its own beside it.
      if (/config_revision|ban_change|ip_list/.test(statement)) count++;
    };
    sql.on('query', note);
    listed = (await listChanges(runtime)).items.length;
    sql.removeListener('query', note);
    return { count, listed };
  };
  const clusterId = await addCluster(runtime);
  const { id } = await saveSite(clusterId);
  const before = await queriesOfList();
  for (let n = 0; n < 20; n++) await console_.client.api('PATCH', `/sites/${id}`, { name: `many-${serial}-${n}` });
  const after = await queriesOfList();
  t.true(after.listed === 20 && before.listed < 20, JSON.stringify({ before, after }));
  t.is(after.count, before.count);
});

test('the future revision of a cluster is no change yet', async (t) => {
  const clusterId = await addCluster(runtime);
  const answer = await console_.client.request('GET', `/api/v1/changes/${clusterId}=999`, undefined, {
    'x-api-key': console_.client.accessKey,
  });
  t.is(answer.status, 404);
});

test('without credentials there is neither a change nor a revision', async (t) => {
  for (const path of ['/changes', '/changes/a=1', '/changes/a=1/nodes', '/clusters/x/revisions']) {
    t.is((await console_.client.request('GET', `/api/v1${path}`)).status, 401);
  }
});

interface Revisions {
  items: {
    revision: string;
    reasonCode: string;
    reasonParams: { changed?: string[] };
    contentHash: string;
    entryCount: number;
    changed: object[];
    actor: { type: string; name: string };
    subject: object | null;
  }[];
  total: number;
}

test('a revision and its change say who made it, and what of what was changed; what is deleted is said to be gone', async (t) => {
  const clusterId = await addCluster(runtime);
  const name = 'told.example';
  const { id, change: created } = await saveSite(clusterId, { name });
  const { client } = console_;
  await client.api('PATCH', `/sites/${id}`, { origins: [{ address: 'other.example.net' }] });
  const list = async () => (await client.api<Revisions>('GET', `/clusters/${clusterId}/revisions`)).items;
  const [latest] = await list();
  t.deepEqual(latest!.subject, { type: 'site', id, name, exists: true });
  t.deepEqual(latest!.reasonParams.changed, ['origins']);
  t.is(latest!.actor.type, 'api_key');
  t.not(latest!.actor.name, '');
  type Told = Pick<Revisions['items'][number], 'actor' | 'subject'>;
  t.like(await client.api<Told>('GET', `/changes/${created}`), { actor: latest!.actor, subject: latest!.subject });
  await client.api('DELETE', `/sites/${id}`);
  for (const { subject } of (await list()).slice(0, 3)) t.deepEqual(subject, { type: 'site', id, name, exists: false });
  const { revisions } = await client.api<{ revisions: { actor: object; subject: object | null }[] }>(
    'GET',
    `/overview?clusterId=${clusterId}`,
  );
  t.like(revisions[0]!, { actor: { type: 'api_key' } });
  t.like(revisions[0]!.subject!, { id, exists: false });
});

test('revisions are listed by page, newest first, with their reason and hash', async (t) => {
  const clusterId = await addCluster(runtime);
  for (let index = 0; index < 25; index++) {
    await change(runtime, async (tx) => {
      await tx
        .sql('cluster')
        .where({ id: clusterId })
        .update({
          client_ip: JSON.stringify({ mode: 'header', trustedProxies: ['192.0.2.0/24'], header: `x-ip-${index}` }),
        });
      await publish(tx, { clusterId, entries: [{ kind: 'client-ip', id: '' }], reason: 'client_ip_updated' });
    });
  }
  const { items, total } = await console_.client.api<Revisions>('GET', `/clusters/${clusterId}/revisions?pageSize=20`);
  t.is(items.length, 20);
  t.is(total, 26);
  const { items: rest } = await console_.client.api<Revisions>(
    'GET',
    `/clusters/${clusterId}/revisions?pageSize=20&page=2`,
  );
  t.is(rest.at(-1)!.revision, '1');
  t.is(items[0]!.reasonCode, 'client_ip_updated');
  const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
  t.is(items[0]!.revision, head.revision.toString());
  t.is(items[0]!.contentHash, Buffer.from(head.setHash).toString('hex'));
  t.deepEqual(items[0]!.changed, [{ kind: 'client-ip', id: '' }]);
  t.deepEqual(
    items.map(({ revision }) => BigInt(revision)),
    Array.from({ length: 20 }, (_, index) => head.revision - BigInt(index)),
  );
});

test('revisions of a cluster that does not exist are not found', async (t) => {
  const answer = await console_.client.request<{ code: string }>(
    'GET',
    '/api/v1/clusters/nobody/revisions',
    undefined,
    {
      'x-api-key': console_.client.accessKey,
    },
  );
  t.is(answer.status, 404);
  t.is(answer.body.code, 'CLUSTER_NOT_FOUND');
});

test('delivery counts the online nodes that serve a site and those with its latest version', async (t) => {
  const clusterId = await addCluster(runtime);
  const { id, change: created } = await saveSite(clusterId);
  const first = BigInt(created.split('=')[1]!);
  // In the future, so that it is on its way however slow the machine is.
  const at = (updatedAt: Date, enabled = true) => [{ id, clusterId, enabled, updatedAt }];
  const of = async (enabled = true, updatedAt = new Date(Date.now() + 3_600_000)) =>
    (await deliveryOf(runtime.pools.api, at(updatedAt, enabled), situationNow)).get(id)!;
  t.deepEqual(await of(), {
    state: 'pending',
    totalNodes: 0,
    servingNodes: 0,
    currentNodes: 0,
    blocked: [],
    unserved: true,
    unknown: false,
    canary: null,
  });
  await addNode(clusterId, { revision: first - 1n });
  await addNode(clusterId, { seen: 50, revision: first });
  await addNode(clusterId, { status: 'disabled', revision: first });
  t.deepEqual(await of(), {
    state: 'pending',
    totalNodes: 1,
    servingNodes: 0,
    currentNodes: 0,
    blocked: [],
    unserved: false,
    unknown: false,
    canary: null,
  });
  t.true((await of(true, new Date(0))).unserved);
  await addNode(clusterId, { revision: first });
  t.deepEqual(await of(), {
    state: 'partial',
    totalNodes: 2,
    servingNodes: 1,
    currentNodes: 1,
    blocked: [],
    unserved: false,
    unknown: false,
    canary: null,
  });
  const nodes = runtime.pools.api('node').where({ cluster_id: clusterId }).select('id');
  await runtime.pools.api('node_state').whereIn('node_id', nodes).update({ revision: first.toString() });
  t.deepEqual(await of(), {
    state: 'live',
    totalNodes: 2,
    servingNodes: 2,
    currentNodes: 2,
    blocked: [],
    unserved: false,
    unknown: false,
    canary: null,
  });

  await console_.client.api('PATCH', `/sites/${id}`, { name: `renamed-${serial}` });
  t.deepEqual(await of(), {
    state: 'partial',
    totalNodes: 2,
    servingNodes: 2,
    currentNodes: 0,
    blocked: [],
    unserved: false,
    unknown: false,
    canary: null,
  });
  const second = (await readConfigHead(runtime.pools.channel, clusterId))!.revision;
  await addNode(clusterId, { revision: second, healthy: false });
  await addNode(clusterId, { revision: second, failed: [{ kind: 'site', id, running: true }] });
  await addNode(clusterId, { revision: second, failed: [{ kind: 'site', id, running: false }] });
  const { blocked, ...counts } = await of();
  t.deepEqual(counts, {
    state: 'partial',
    totalNodes: 5,
    servingNodes: 4,
    currentNodes: 0,
    unserved: false,
    unknown: false,
    canary: null,
  });
  t.like(blocked[0]!, { kind: 'site', reason: 'failed', count: 2 });

  await console_.client.api('PUT', `/sites/${id}/enabled`, { enabled: false });
  const third = (await readConfigHead(runtime.pools.channel, clusterId))!.revision;
  await addNode(clusterId, { revision: third });
  t.deepEqual(await of(false), {
    state: 'disabled',
    totalNodes: 6,
    servingNodes: 4,
    currentNodes: 1,
    blocked: [],
    unserved: false,
    unknown: false,
    canary: null,
  });
});
