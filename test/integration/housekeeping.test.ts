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
