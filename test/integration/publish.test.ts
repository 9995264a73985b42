// Publishing on a real database: numbers, hashes, sums and counts are what the entries say, whatever the history.
import test from 'ava';
import fc from 'fast-check';
import { errorCodeOf } from '../../contract/errors.ts';
import { createCluster } from '../../models/clusters/create-cluster.ts';
import { isValidBase, readConfigHead } from '../../models/config/config-history.ts';
import { publish, publishAll } from '../../models/config/publish.ts';
import { clustersWithRequests, requestPublication } from '../../models/config/publish-requests.ts';
import { lockHead } from '../../models/config/write-revision.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import { bucketOf, entryHash, fromSum, moveSum } from '../../proto/entry-hash.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  addCluster,
  change,
  createPipeline,
  type Pipeline,
  publishThings,
  saveThings,
  THING,
  thingKind,
} from '../helpers/pipeline.ts';

let pipeline: Pipeline;
let runtime: Runtime;

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
});
test.after.always(() => pipeline?.close());

interface EntryRow {
  kind: string;
  resource_id: string;
  blob_hash: Buffer;
  features: string[];
  from_revision: string;
  to_revision: string | null;
}

function hashOf(entries: readonly EntryRow[]): Buffer {
  return fromSum(
    moveSum(
      0n,
      [],
      entries.map((entry) => entryHash(entry.kind, entry.resource_id, entry.blob_hash, entry.features)),
    ),
  );
}

/** Recomputes everything kept incrementally from the entries themselves; answers what differs. */
async function differences(clusterId: string): Promise<string[]> {
  const found: string[] = [];
  const sql = runtime.pools.api;
  const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
  const rows = (await sql('config_entry').where({ cluster_id: clusterId })) as EntryRow[];
  const live = rows.filter((row) => row.to_revision === null);
  if (!hashOf(live).equals(head.setHash)) found.push('set hash of the head');
  if (live.length !== head.entryCount) found.push('entry count');
  const revisions = (await sql('config_revision').where({ cluster_id: clusterId }).orderBy('number')) as {
    number: string;
    set_hash: Buffer;
    entry_count: string;
  }[];
  if (revisions.some(({ number }, index) => BigInt(number) !== BigInt(index + 1))) found.push('gapless numbers');
  if (BigInt(revisions.length) !== head.revision) found.push('number of revisions');
  for (const { number, set_hash, entry_count } of revisions) {
    const then = rows.filter(
      ({ from_revision, to_revision }) =>
        BigInt(from_revision) <= BigInt(number) && (to_revision === null || BigInt(to_revision) > BigInt(number)),
    );
    if (!hashOf(then).equals(set_hash)) found.push(`set hash of revision ${number}`);
    if (then.length !== Number(entry_count)) found.push(`entry count of revision ${number}`);
  }
  const sums = new Map(
    ((await sql('config_bucket').where({ cluster_id: clusterId })) as { bucket: number; sum: Buffer }[]).map(
      ({ bucket, sum }) => [bucket, sum],
    ),
  );
  const byBucket = Map.groupBy(live, ({ kind, resource_id }) => bucketOf(kind, resource_id));
  for (const [bucket, sum] of sums) {
    if (!hashOf(byBucket.get(bucket) ?? []).equals(sum)) found.push(`sum of bucket ${bucket}`);
  }
  for (const bucket of byBucket.keys()) if (!sums.has(bucket)) found.push(`missing bucket ${bucket}`);
  const counted = new Map<string, number>();
  for (const { features } of live) for (const name of features) counted.set(name, (counted.get(name) ?? 0) + 1);
  const stored = (await sql('config_feature').where({ cluster_id: clusterId })) as { feature: string; count: string }[];
  const same = stored.length === counted.size && stored.every((row) => counted.get(row.feature) === Number(row.count));
  if (!same) found.push('feature counts');
  return found;
}

const thing = fc.record({
  id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  body: fc.option(fc.constantFrom('', 'x', 'y', 'a longer body'), { nil: null }),
  features: fc.constantFrom<string[]>([], ['bans-v1'], ['bans-v1', 'domains-v2']),
});

test('any history keeps numbers gapless and hashes, sums and counts equal to the entries', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(thing, { minLength: 1, maxLength: 4 }), { maxLength: 12 }), async (history) => {
      const clusterId = await addCluster(runtime);
      for (const things of history) await publishThings(runtime, clusterId, things);
      t.deepEqual(await differences(clusterId), []);
    }),
    { numRuns: 25 },
  );
});

test('publications of one cluster at the same time get different numbers without a gap', async (t) => {
  const other = await pipeline.another();
  try {
    const clusterId = await addCluster(runtime);
    const numbers = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        publishThings(index % 2 ? runtime : other.runtime, clusterId, [{ id: `t${index}`, body: `${index}` }]),
      ),
    );
    t.is(new Set(numbers).size, 40);
    t.deepEqual(await differences(clusterId), []);
  } finally {
    await other.close();
  }
});

test('a publication that changes nothing makes no revision', async (t) => {
  const clusterId = await addCluster(runtime);
  const first = await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]);
  t.is(await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]), null);
  const { output, changes } = await change(runtime, (tx) =>
    publish(tx, {
      clusterId,
      entries: [
        { kind: THING, id: 'a' },
        { kind: THING, id: 'never there' },
      ],
      reason: 'test',
    }),
  );
  t.is(output, null);
  t.deepEqual(changes, []);
  t.is(String((await readConfigHead(runtime.pools.channel, clusterId))!.revision), first!);
});

test('a revision tells its reason, parameters, actor and entries, and the call learns its number', async (t) => {
  const clusterId = await addCluster(runtime);
  const { output, changes } = await change(runtime, async (tx) => {
    await saveThings(tx.sql, clusterId, [{ id: 'a', body: 'x' }]);
    return publish(tx, {
      clusterId,
      entries: [{ kind: THING, id: 'a' }],
      reason: 'site_updated',
      params: { site: 's' },
    });
  });
  t.deepEqual(changes, [`${clusterId}=${output}`]);
  const row = await runtime.pools.api('config_revision').where({ cluster_id: clusterId, number: output }).first();
  t.is(row.reason, 'site_updated');
  t.deepEqual(row.params, { site: 's' });
  t.deepEqual(row.actor, { type: 'system', id: null, name: 'test' });
  t.deepEqual(row.changed, [{ kind: THING, id: 'a' }]);
});

test('a change that rolls back leaves no revision, no entry and no wake-up', async (t) => {
  const clusterId = await addCluster(runtime);
  await runtime.pools.api('outbox').delete();
  const before = await readConfigHead(runtime.pools.channel, clusterId);
  await t.throwsAsync(
    change(runtime, async (tx) => {
      await saveThings(tx.sql, clusterId, [{ id: 'a', body: 'x' }]);
      await publish(tx, { clusterId, entries: [{ kind: THING, id: 'a' }], reason: 'test' });
      throw new Error('changed my mind');
    }),
    { message: 'changed my mind' },
  );
  t.deepEqual(await readConfigHead(runtime.pools.channel, clusterId), before);
  t.is((await runtime.pools.api('outbox').where({ key: clusterId })).length, 0);
  t.is((await runtime.pools.api('config_entry').where({ cluster_id: clusterId, resource_id: 'a' })).length, 0);
});

test.serial(
  'a new cluster has its first revision even without an entry, and every platform entry at once',
  async (t) => {
    const empty = await addCluster(runtime);
    t.is((await readConfigHead(runtime.pools.channel, empty))!.revision, 1n);
    await saveThings(runtime.pools.api, '*', [{ id: 'platform', body: 'everywhere' }]);
    try {
      const clusterId = await addCluster(runtime);
      const rows = await runtime.pools.api('config_entry').where({ cluster_id: clusterId, resource_id: 'platform' });
      t.is(rows.length, 1);
      t.deepEqual(await differences(clusterId), []);
    } finally {
      await saveThings(runtime.pools.api, '*', [{ id: 'platform', body: null }]);
    }
  },
);

test('bodies up to 64 KiB are published, a larger one is refused and nothing changes', async (t) => {
  const clusterId = await addCluster(runtime);
  t.truthy(await publishThings(runtime, clusterId, [{ id: 'a', body: Buffer.alloc(65_536, 1) }]));
  const error = await t.throwsAsync(publishThings(runtime, clusterId, [{ id: 'a', body: Buffer.alloc(65_537, 1) }]));
  t.is(errorCodeOf(error), 'PAYLOAD_TOO_LARGE');
  t.deepEqual(await differences(clusterId), []);
});

test.serial('an older compiler does not replace what a newer one compiled', async (t) => {
  const clusterId = await addCluster(runtime);
  thingKind.compilerVersion = 2;
  await publishThings(runtime, clusterId, [{ id: 'a', body: 'by version 2' }]);
  thingKind.compilerVersion = 1;
  const error = await t.throwsAsync(publishThings(runtime, clusterId, [{ id: 'a', body: 'by version 1' }]));
  t.is(errorCodeOf(error), 'SERVICE_UNAVAILABLE');
  t.is(await publishThings(runtime, clusterId, [{ id: 'a', body: 'by version 2' }]), null);
  t.truthy(await publishThings(runtime, clusterId, [{ id: 'b', body: 'another entry' }]));
});

test('a lock that is not had within 2 s answers that the service is unavailable', async (t) => {
  const clusterId = await addCluster(runtime);
  const holder = await runtime.pools.channel.connect();
  try {
    await holder.query('begin');
    await holder.query('select 1 from cluster_head where cluster_id = $1 for no key update', [clusterId]);
    const error = await t.throwsAsync(publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]));
    t.is(errorCodeOf(error), 'SERVICE_UNAVAILABLE');
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  t.truthy(await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]));
});

test('a publication waits its turn behind one of another console that takes longer than a lock may', async (t) => {
  const other = await pipeline.another();
  try {
    const clusterId = await addCluster(runtime);
    const begun = Promise.withResolvers<void>();
    const slow = change(
      other.runtime,
      async (tx) => {
        await lockHead(tx, clusterId, []);
        begun.resolve();
        await tx.sql.raw('select pg_sleep(2.5)');
      },
      { clusterId },
    );
    await begun.promise;
    t.truthy(await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]));
    await slow;
  } finally {
    await other.close();
  }
});

test('a queue behind a held lock ends together, it does not wait one after the other', async (t) => {
  const clusterId = await addCluster(runtime);
  const holder = await runtime.pools.channel.connect();
  let outcomes: PromiseSettledResult<unknown>[];
  try {
    await holder.query('begin');
    await holder.query('select 1 from cluster_head where cluster_id = $1 for no key update', [clusterId]);
    const queue = Array.from({ length: 30 }, (_, index) =>
      publishThings(runtime, clusterId, [{ id: 'a', body: `${index}` }]),
    );
    outcomes = await Promise.allSettled(queue);
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  // Waiting in turn would take a minute, longer than this file may.
  t.true(
    outcomes.every((outcome) => outcome.status === 'rejected' && errorCodeOf(outcome.reason) === 'SERVICE_UNAVAILABLE'),
  );
  t.truthy(await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]));
});

test.serial('a platform change reaches every cluster, and one held cluster does not stop the others', async (t) => {
  const held = await addCluster(runtime);
  const free = await addCluster(runtime);
  const holder = await runtime.pools.channel.connect();
  const call = systemCall('test');
  try {
    await holder.query('begin');
    await holder.query('select 1 from cluster_head where cluster_id = $1 for no key update', [held]);
    const { output: clusterIds } = await change(runtime, async (tx) => {
      await saveThings(tx.sql, '*', [{ id: 'global', body: 'v1' }]);
      return requestPublication(tx, { entries: [{ kind: THING, id: 'global' }], reason: 'ip_list_updated' }, [
        held,
        free,
      ]);
    });
    t.deepEqual(clusterIds.toSorted(), [held, free].toSorted());
    await publishRequested(runtime, call, clusterIds);
    t.deepEqual(call.changes, [`${free}=2`]);
    t.deepEqual(await clustersWithRequests(runtime.pools.api, 0), [held]);
  } finally {
    await holder.query('rollback');
    holder.release();
  }
  // The attempt above may still be under way and win; either way the request is done once.
  await publishRequested(runtime, call, [held]);
  t.deepEqual(await clustersWithRequests(runtime.pools.api, 0), []);
  t.is((await readConfigHead(runtime.pools.channel, held))!.revision, 2n);
  t.is(call.changes[0], `${free}=2`);
  await saveThings(runtime.pools.api, '*', [{ id: 'global', body: null }]);
});

test.serial('a cluster created during a platform change does not miss it', async (t) => {
  let created: Promise<{ output: string }> | null = null;
  await change(runtime, async (tx) => {
    await saveThings(tx.sql, '*', [{ id: 'late', body: 'v1' }]);
    await requestPublication(tx, { entries: [{ kind: THING, id: 'late' }], reason: 'ip_list_updated' });
    // Not committed yet: the cluster does not see the thing, and the request did not see the cluster.
    created = change(runtime, (inner) => createCluster(inner, runtime.sealer, { name: `late-${Date.now()}` }));
    await new Promise((resolve) => setTimeout(resolve, 100));
  });
  const { output: clusterId } = await created!;
  const rows = await runtime.pools.api('config_entry').where({ cluster_id: clusterId, resource_id: 'late' });
  t.is(rows.length, 1);
  await saveThings(runtime.pools.api, '*', [{ id: 'late', body: null }]);
});

test('a base is valid only with the hash of its revision, in its epoch', async (t) => {
  const clusterId = await addCluster(runtime);
  for (const body of ['1', '2', '3']) await publishThings(runtime, clusterId, [{ id: 'a', body }]);
  const pool = runtime.pools.channel;
  const head = (await readConfigHead(pool, clusterId))!;
  const row = await runtime.pools.api('config_revision').where({ cluster_id: clusterId, number: 2 }).first();
  const base = { epoch: head.epoch, track: head.track, revision: 2n, setHash: row.set_hash as Buffer };
  t.true(await isValidBase(pool, clusterId, head, base));
  t.true(await isValidBase(pool, clusterId, head, head));
  t.false(await isValidBase(pool, clusterId, head, { ...base, setHash: head.setHash }));
  t.false(await isValidBase(pool, clusterId, head, { ...base, epoch: head.epoch + 1n }));
  t.false(await isValidBase(pool, clusterId, head, { ...head, revision: head.revision + 1n }));
  t.false(await isValidBase(pool, clusterId, { ...head, deltaFloor: 3n }, base));
});

test('publishing everything again changes nothing', async (t) => {
  const clusterId = await addCluster(runtime);
  await publishThings(runtime, clusterId, [
    { id: 'a', body: 'x' },
    { id: 'b', body: 'y' },
  ]);
  const before = (await readConfigHead(runtime.pools.channel, clusterId))!;
  await change(runtime, (tx) => publishAll(tx, { clusterId, reason: 'test' }));
  const after = (await readConfigHead(runtime.pools.channel, clusterId))!;
  t.deepEqual(after.setHash, before.setHash);
});

test('what ends takes its live entries along by what they belong to, whatever their kinds, in one revision', async (t) => {
  const clusterId = await addCluster(runtime);
  const sql = runtime.pools.api;
  const things = ['owner/1', 'owner/2', 'other/1'].map((id) => ({ id, body: id, features: ['bans-v1'] }));
  await publishThings(runtime, clusterId, things);
  // Of a kind that only a newer release knows.
  await sql('config_entry')
    .where({ cluster_id: clusterId, resource_id: 'owner/2', to_revision: null })
    .update({ compiler_version: 99 });
  const { output, changes } = await change(runtime, (tx) =>
    publish(tx, { clusterId, entries: [{ kind: THING, id: 'owner/1' }], ends: ['owner'], reason: 'site_deleted' }),
  );
  t.deepEqual(changes, [`${clusterId}=${output}`]);
  const live = await sql('config_entry').where({ cluster_id: clusterId, kind: THING, to_revision: null });
  t.deepEqual(
    live.map(({ resource_id }) => resource_id),
    ['other/1'],
  );
  t.deepEqual(await differences(clusterId), []);
  const again = await change(runtime, (tx) => publish(tx, { clusterId, entries: [], ends: ['owner'], reason: 'x' }));
  t.is(again.output, null, 'nothing is left to end');
});

test('a request that something ends is published in every cluster', async (t) => {
  const clusterIds = [await addCluster(runtime), await addCluster(runtime)];
  for (const id of clusterIds) await publishThings(runtime, id, [{ id: 'gone/1', body: 'x' }]);
  const call = systemCall('test');
  await change(runtime, (tx) => requestPublication(tx, { entries: [], ends: ['gone'], reason: 'x' }, clusterIds));
  await publishRequested(runtime, call, clusterIds);
  t.deepEqual(await runtime.pools.api('publish_request').whereIn('cluster_id', clusterIds), []);
  t.deepEqual(await runtime.pools.api('config_entry').where({ owner: 'gone', to_revision: null }), []);
});

test('entries with the same settings share one snapshot of them, and a later one leaves it as it was', async (t) => {
  const clusterIds = [await addCluster(runtime), await addCluster(runtime)];
  const settings = { b: [{ y: 1, x: null }], a: 'same' };
  for (const id of clusterIds) await publishThings(runtime, id, [{ id: 'a', body: `${id} 1`, settings }]);
  await publishThings(runtime, clusterIds[0]!, [{ id: 'a', body: '2', settings: { a: 'other' } }]);
  await publishThings(runtime, clusterIds[0]!, [{ id: 'without', body: '3' }]);
  const rows = await runtime.pools
    .api('config_entry as e')
    .leftJoin('config_settings as s', 's.hash', 'e.settings_hash')
    .whereIn('e.cluster_id', clusterIds)
    .where('e.kind', THING)
    .orderBy(['e.from_revision', 'e.resource_id'])
    .select('s.settings');
  const same = '{"a":"same","b":[{"x":null,"y":1}]}';
  t.deepEqual(
    rows.map((row) => row.settings),
    [same, same, '{"a":"other"}', null],
  );
  t.is((await runtime.pools.api('config_settings').where({ settings: same })).length, 1);
});
