// What ends by age, and what an action left to do.
import test from 'ava';
import { LIFTED_AT_ONCE, liftBansOfGoneSite } from '../../models/bans/gone-site.ts';
import { readConfigHead } from '../../models/config/config-history.ts';
import { clustersWithRequests, requestPublication } from '../../models/config/publish-requests.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { publishLeftRequests } from '../../services/changes/left-requests.ts';
import { JOBS } from '../../services/housekeeping/jobs.ts';
import { addCluster, change, createPipeline, type Pipeline, saveThings, THING } from '../helpers/pipeline.ts';

let pipeline: Pipeline;
let runtime: Runtime;

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
});
test.after.always(() => pipeline?.close());

const never = new AbortController().signal;

async function runJob(name: string): Promise<void> {
  await JOBS.find((job) => job.name === name)!.run(runtime, never);
}

// Before all others, which do not want their work done by it.
test.serial('every job runs on an empty database, and stops at once when asked', async (t) => {
  for (const job of JOBS) {
    await t.notThrowsAsync(job.run(runtime, never), job.name);
    await t.notThrowsAsync(job.run(runtime, AbortSignal.abort()), job.name);
  }
});

test('bans of a deleted site are lifted in batches, and a job that ended half-way is gone on with', async (t) => {
  const sql = runtime.pools.api;
  const clusterId = await addCluster(runtime);
  const left = async () => {
    const { rows } = await sql.raw(
      `select (select count(*)::int from ban where site_id = 'gone' and lifted_at is null) as active,
         (select count(*)::int from gone_site) as sites`,
    );
    return rows[0];
  };
  await sql.raw(
    `insert into ban (scope, site_id, cluster_id, cidr, reason, source, expires_at, seq)
     select 'site', 'gone', ?, set_masklen(('10.52.0.0'::inet + n), 32), 'abuse', 'manual', now() + interval '1 h', 0
       from generate_series(1, ?::int) n`,
    [clusterId, 2 * LIFTED_AT_ONCE + 1],
  );
  await sql('gone_site').insert({ site_id: 'gone' });
  // A process that was killed has done whole batches, or nothing.
  await change(runtime, (tx) => liftBansOfGoneSite(tx, 'gone'));
  t.deepEqual(await left(), { active: LIFTED_AT_ONCE + 1, sites: 1 });
  await t.throwsAsync(
    change(runtime, async (tx) => {
      await liftBansOfGoneSite(tx, 'gone');
      throw new Error('killed');
    }),
  );
  t.deepEqual(await left(), { active: LIFTED_AT_ONCE + 1, sites: 1 });
  await runJob('lift-bans-of-gone-sites');
  t.deepEqual(await left(), { active: 0, sites: 0 });
});

test('a request for publication that its action left is published by the job, once it is old enough', async (t) => {
  const clusterId = await addCluster(runtime);
  await change(runtime, async (tx) => {
    await saveThings(tx.sql, clusterId, [{ id: 'left', body: 'x' }]);
    await requestPublication(tx, { entries: [{ kind: THING, id: 'left' }], reason: 'ip_list_updated' }, [clusterId]);
  });
  await publishLeftRequests(runtime, never);
  t.is((await readConfigHead(runtime.pools.channel, clusterId))!.revision, 1n, 'it still belongs to the action');
  await runtime.pools.api('publish_request').update({ created_at: runtime.pools.api.raw("now() - interval '4 s'") });
  await publishLeftRequests(runtime, never);
  t.is((await readConfigHead(runtime.pools.channel, clusterId))!.revision, 2n);
  t.deepEqual(await clustersWithRequests(runtime.pools.api, 0), []);
  const row = await runtime.pools.api('config_revision').where({ cluster_id: clusterId, number: 2 }).first();
  t.is(row.actor.name, 'test', 'the revision names who asked for it');
});

test('records of idempotency live for 24 hours', async (t) => {
  const sql = runtime.pools.api;
  for (const [key, hours] of [
    ['old', 25],
    ['young', 23],
  ] as const) {
    await sql('idempotency_record').insert({
      namespace: 'n',
      key,
      method: 'POST',
      path: '/x',
      body_hash: Buffer.alloc(32),
      state: 'done',
      started_at: sql.raw('now() - make_interval(hours => ?)', [hours]),
    });
  }
  await runJob('purge-idempotency');
  t.deepEqual(
    (await sql('idempotency_record').where({ namespace: 'n' })).map((row: { key: string }) => row.key),
    ['young'],
  );
});

test('a purge keeps up with a busy hour', async (t) => {
  const sql = runtime.pools.api;
  await sql.raw(
    `insert into idempotency_record (namespace, key, method, path, body_hash, state, started_at)
     select 'busy', n::text, 'POST', '/x', '', 'done', now() - interval '25 hours' from generate_series(1, 102001) n`,
  );
  await runJob('purge-idempotency');
  t.deepEqual(await sql('idempotency_record').where({ namespace: 'busy' }), []);
});

test('enrollment tokens stay for 7 days after they were used or ran out', async (t) => {
  const sql = runtime.pools.api;
  const clusterId = await addCluster(runtime);
  const days = (count: number | null) => (count === null ? null : sql.raw('now() - make_interval(days => ?)', [count]));
  const tokens = [
    ['used long ago', 8, 8],
    ['used lately', 20, 6],
    ['ran out long ago', 8, null],
    ['ran out lately', 6, null],
    ['valid', -1, null],
  ] as const;
  for (const [prefix, expired, used] of tokens) {
    await sql('enrollment_token').insert({
      cluster_id: clusterId,
      prefix,
      secret_hash: Buffer.from(prefix),
      expires_at: days(expired),
      used_at: days(used),
    });
  }
  await runJob('purge-enrollment-tokens');
  const left = await sql('enrollment_token').where({ cluster_id: clusterId });
  t.deepEqual(left.map((row: { prefix: string }) => row.prefix).toSorted(), ['ran out lately', 'used lately', 'valid']);
});

test('the history of rollouts is kept for 90 days', async (t) => {
  const sql = runtime.pools.api;
  const clusterId = await addCluster(runtime);
  for (const days of [91, 89]) {
    await sql('rollout_event').insert({
      id: `${clusterId} ${days}`,
      cluster_id: clusterId,
      at: sql.raw('now() - make_interval(days => ?)', [days]),
      kind: 'direct',
      actor: '{}',
    });
  }
  await runJob('purge-rollout-events');
  const left = await sql('rollout_event').where({ cluster_id: clusterId });
  t.deepEqual(
    left.map(({ id }: { id: string }) => id),
    [`${clusterId} 89`],
  );
});

async function addNode(clusterId: string, name: string): Promise<string> {
  const sql = runtime.pools.api;
  const group = await sql('node_group').where({ cluster_id: clusterId, is_default: true }).first();
  const [node] = await sql('node').insert({ cluster_id: clusterId, node_group_id: group.id, name }).returning('id');
  return node.id;
}

test('certificates of nodes go 30 days after they expired, except the one that a node should renew', async (t) => {
  const sql = runtime.pools.api;
  const node = await addNode(await addCluster(runtime), 'certified');
  const certificates = [
    ['superseded long ago', node, 'superseded', 31],
    ['superseded lately', node, 'superseded', 29],
    ['expired of a node', node, 'active', 31],
    ['expired of a deleted node', 'deleted-node', 'active', 31],
    ['revoked and valid', 'deleted-node', 'revoked', -1],
    ['revoked and expired', 'deleted-node', 'revoked', 31],
  ] as const;
  for (const [serial, nodeId, state, days] of certificates) {
    await sql('node_certificate').insert({
      serial,
      node_id: nodeId,
      state,
      not_after: sql.raw('now() - make_interval(days => ?)', [days]),
      fingerprint: serial,
    });
  }
  await runJob('purge-node-certificates');
  const left = await sql('node_certificate').whereIn('node_id', [node, 'deleted-node']).orderBy('serial');
  t.deepEqual(
    left.map(({ serial }: { serial: string }) => serial),
    ['expired of a node', 'revoked and valid', 'superseded lately'],
  );
});

test('the name of a deleted site stays as long as usage or an entry refers to it', async (t) => {
  const sql = runtime.pools.api;
  const clusterId = await addCluster(runtime);
  const [site] = await sql('site')
    .insert({
      cluster_id: clusterId,
      name: 'labelled',
      search_text: '',
      origins: '[]',
      origin_settings: '{}',
      content_settings: '{}',
      ports: '[]',
    })
    .returning('id');
  for (const id of [site.id, 'in usage', 'in an entry', 'forgotten']) {
    await sql('site_label').insert({ site_id: id, name: id });
  }
  await sql('deleted_site').insert({ site_id: 'in usage', cluster_id: clusterId, name: 'x', deleted_at: new Date() });
  await sql('config_entry').insert({
    cluster_id: clusterId,
    track: 'S',
    kind: THING,
    resource_id: 'labelled',
    bucket: 0,
    from_revision: 1,
    to_revision: 1,
    compiler_version: 1,
    source: 'save',
    owner: 'site:in an entry',
  });
  await runJob('purge-site-labels');
  const left = await sql('site_label').whereIn('site_id', [site.id, 'in usage', 'in an entry', 'forgotten']);
  t.deepEqual(
    left.map(({ site_id: id }: { site_id: string }) => id).toSorted(),
    [site.id, 'in usage', 'in an entry'].toSorted(),
  );
});

test('cursors of usage go with their nodes, 7 days after the last batch', async (t) => {
  const sql = runtime.pools.api;
  const node = await addNode(await addCluster(runtime), 'counting');
  const ago = (days: number | null) => (days === null ? null : sql.raw('now() - make_interval(days => ?)', [days]));
  const cursors = [
    [node, 30],
    ['gone-lately', 6],
    ['gone', 8],
    ['gone-silent', null],
  ] as const;
  for (const [id, days] of cursors) await sql('usage_cursor').insert({ node_id: id, stored_at: ago(days) });
  await runJob('purge-usage-cursors');
  const left = await sql('usage_cursor').orderBy('node_id');
  t.deepEqual(left.map(({ node_id: id }: { node_id: string }) => id).toSorted(), [node, 'gone-lately'].toSorted());
});

test('of revisions the latest 200 stay, and those that can still be a base', async (t) => {
  const sql = runtime.pools.api;
  const clusterId = await addCluster(runtime);
  await sql.raw(
    `insert into config_revision (cluster_id, epoch, number, reason, actor, set_hash, entry_count)
     select cluster_id, epoch, n, 'test', '{}', set_hash, 0 from cluster_head, generate_series(2, 500) n where cluster_id = ?`,
    [clusterId],
  );
  await sql('cluster_head').where({ cluster_id: clusterId }).update({ revision: 500, delta_floor: 100 });
  const lowest = async () => {
    const row = await sql('config_revision').where({ cluster_id: clusterId }).min('number as number').first();
    return Number((row as { number: string }).number);
  };
  await runJob('sweep-revisions');
  t.is(await lowest(), 100);
  await sql('cluster_head').where({ cluster_id: clusterId }).update({ delta_floor: 450 });
  await runJob('sweep-revisions');
  t.is(await lowest(), 301);
});
