// What a node reads of its cluster's configuration brings it where the history says, from any place.
import { create, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { readConfigDelta } from '../../models/config/config-delta.ts';
import { readConfigHead } from '../../models/config/config-history.ts';
import { readConfigPage } from '../../models/config/config-page.ts';
import { answerGetConfig } from '../../models/config/get-config.ts';
import { raiseDeltaFloors, sweepBlobs, sweepEntries, sweepRevisions, sweepSettings } from '../../models/db/sweeps.ts';
import { EntrySchema } from '../../proto/gen/svc/config/v1/entry_pb.js';
import {
  type ConfigDelta,
  ConfigDeltaSchema,
  GetConfigRequestSchema,
  Track,
} from '../../proto/gen/svc/node/v1/config_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { ModelNode } from '../helpers/model-node.ts';
import {
  addCluster,
  createPipeline,
  expectedThings,
  heldThings,
  type Pipeline,
  publishThings,
  THING,
  thingKind,
} from '../helpers/pipeline.ts';

let pipeline: Pipeline;
let runtime: Runtime;

test.before(async () => {
  // As large as the largest kinds of the product.
  Object.assign(thingKind, { maxBodyBytes: 16 * 1024 * 1024 });
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
});
test.after.always(() => pipeline?.close());

const thing = fc.record({
  id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
  body: fc.option(fc.string({ maxLength: 8 }), { nil: null }),
  features: fc.constantFrom<string[]>([], ['bans-v1']),
});

test('a difference between any two revisions leads from the one to the other', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(thing, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 7 }),
      async (history) => {
        const clusterId = await addCluster(runtime);
        const pool = runtime.pools.channel;
        // The node as it was at each revision, by pulling after each publication.
        const node = new ModelNode(clusterId);
        await node.heartbeat(pool);
        const states = [{ ...node.config, entries: new Map(node.entries) }];
        for (const step of history) {
          if ((await publishThings(runtime, clusterId, step)) === null) continue;
          await node.heartbeat(pool);
          states.push({ ...node.config, entries: new Map(node.entries) });
        }
        t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
        for (const [index, from] of states.entries()) {
          for (const to of states.slice(index + 1)) {
            const other = new ModelNode(clusterId);
            other.config = { epoch: from.epoch, track: from.track, revision: from.revision };
            other.entries = new Map(from.entries);
            const delta = await readConfigDelta(pool, clusterId, from, to);
            const outcome = other.receiveConfig(encoded(delta));
            t.is(outcome, 'applied');
            t.deepEqual(heldThings(other.entries), heldThings(to.entries));
          }
        }
      },
    ),
    { numRuns: 15 },
  );
});

function encoded(delta: ConfigDelta): Uint8Array {
  return toBinary(ConfigDeltaSchema, delta);
}

test('a node that drifted is repaired by the buckets that differ, and nothing else travels', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'), { maxLength: 4 }),
      fc.array(fc.constantFrom('a1', 'a2', 'a3'), { maxLength: 2 }),
      fc.array(fc.constantFrom('x', 'y'), { maxLength: 2 }),
      async (lost, altered, invented) => {
        const clusterId = await addCluster(runtime);
        const pool = runtime.pools.channel;
        const ids = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'];
        await publishThings(
          runtime,
          clusterId,
          ids.map((id) => ({ id, body: `body of ${id}` })),
        );
        const node = new ModelNode(clusterId);
        await node.heartbeat(pool);
        const damage = new Set<string>();
        for (const id of lost) if (node.entries.delete(`${THING}\0${id}`)) damage.add(id);
        for (const id of altered) {
          damage.add(id);
          node.entries.set(`${THING}\0${id}`, create(EntrySchema, { kind: THING, id, body: Buffer.from('rot') }));
        }
        for (const id of invented) {
          damage.add(id);
          node.entries.set(`${THING}\0${id}`, create(EntrySchema, { kind: THING, id, body: Buffer.from('new') }));
        }
        await node.heartbeat(pool);
        t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
        t.deepEqual(node.pulls.slice(0, damage.size === 0 ? 0 : 1), damage.size === 0 ? [] : ['repair']);
      },
    ),
    { numRuns: 20 },
  );
});

test('a snapshot goes on below its checkpoint while the cluster changes, and the difference follows', async (t) => {
  const clusterId = await addCluster(runtime);
  const pool = runtime.pools.channel;
  // Above one page: 40 entries of 60 KiB.
  const many = Array.from({ length: 40 }, (_, index) => ({
    id: `big${String(index).padStart(2, '0')}`,
    body: Buffer.alloc(61_440, index),
  }));
  await publishThings(runtime, clusterId, many);
  const first = (await readConfigPage(pool, clusterId, Track.STABLE, ''))!;
  t.not(first.nextPageToken, '');
  await publishThings(runtime, clusterId, [
    { id: 'big39', body: null },
    { id: 'big38', body: 'changed' },
    { id: 'zz', body: 'added' },
  ]);
  const ids = first.entries.map(({ id }) => id);
  for (let token = first.nextPageToken; token !== ''; ) {
    const page = (await readConfigPage(pool, clusterId, Track.STABLE, token))!;
    t.is(page.checkpoint!.revision, first.checkpoint!.revision);
    ids.push(...page.entries.map(({ id }) => id));
    token = page.nextPageToken;
  }
  t.deepEqual(
    ids.filter((id) => id.startsWith('big')),
    many.map(({ id }) => id),
  );
  t.false(ids.includes('zz'));
  const node = new ModelNode(clusterId);
  await node.heartbeat(pool);
  t.is(node.entries.get(`${THING}\0big38`)!.body.length, 'changed'.length);
});

test('a page token that no page carried starts a snapshot', async (t) => {
  const clusterId = await addCluster(runtime);
  await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]);
  const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
  const beyond = Buffer.from(JSON.stringify([String(head.epoch), 'S', '99', 'z', 'z'])).toString('base64url');
  const zero = Buffer.from(JSON.stringify([String(head.epoch), 'S', '1', '\0', ''])).toString('base64url');
  for (const token of ['x', '%', 'W10', beyond, zero, 'A'.repeat(5000)]) {
    const page = (await readConfigPage(runtime.pools.channel, clusterId, Track.STABLE, token))!;
    t.is(page.checkpoint!.revision, head.revision, token.slice(0, 40));
    t.true(page.entries.some(({ id }) => id === 'a'));
  }
});

test('a difference larger than may be pushed carries numbers only; pulled, it comes in steps', async (t) => {
  const clusterId = await addCluster(runtime);
  const pool = runtime.pools.channel;
  const node = new ModelNode(clusterId);
  await node.heartbeat(pool);
  const before = (await readConfigHead(pool, clusterId))!;
  for (let round = 0; round < 12; round++) {
    const big = Array.from({ length: 10 }, (_, index) => ({
      id: `r${round}i${index}`,
      body: Buffer.alloc(60_000, round),
    }));
    await publishThings(runtime, clusterId, big);
  }
  const head = (await readConfigHead(pool, clusterId))!;
  const pushed = await readConfigDelta(pool, clusterId, before, head);
  t.true(pushed.truncated);
  t.is(pushed.upserts.length, 0);
  await node.heartbeat(pool);
  t.true(node.pulls.length > 1);
  t.true(node.pulls.every((pull) => pull === 'delta'));
  t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
});

test('an entry of megabytes travels as a change and as a repair, not with everything else', async (t) => {
  const clusterId = await addCluster(runtime);
  const pool = runtime.pools.channel;
  const large = (id: string, fill: number) => ({ id, body: Buffer.alloc(4_500_000, fill) });
  await publishThings(runtime, clusterId, [{ id: 'small', body: 'small' }, large('a', 1)]);
  const node = new ModelNode(clusterId);
  const pull = async (): Promise<string[]> => {
    node.pulls.length = 0;
    await node.heartbeat(pool);
    t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
    return [...node.pulls];
  };
  await pull();

  await publishThings(runtime, clusterId, [large('a', 2)]);
  t.deepEqual(await pull(), ['delta']);
  await publishThings(runtime, clusterId, [large('a', 3)]);
  await publishThings(runtime, clusterId, [{ id: 'small', body: 'other' }]);
  await publishThings(runtime, clusterId, [large('b', 3)]);
  const steps = await pull();
  t.true(steps.length > 1 && steps.every((step) => step === 'delta'), steps.join());

  node.entries.delete(`${THING}\0a`);
  node.entries.delete(`${THING}\0small`);
  t.is((await pull())[0], 'repair');
});

test('what travels for a change does not depend on how many entries the cluster has', async (t) => {
  const sizes: number[] = [];
  for (const count of [3, 1500]) {
    const clusterId = await addCluster(runtime);
    const many = Array.from({ length: count }, (_, index) => ({ id: `t${index}`, body: `body ${index}` }));
    for (let from = 0; from < count; from += 500) await publishThings(runtime, clusterId, many.slice(from, from + 500));
    const before = (await readConfigHead(runtime.pools.channel, clusterId))!;
    await publishThings(runtime, clusterId, [{ id: 't1', body: 'changed' }]);
    const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
    const delta = await readConfigDelta(runtime.pools.channel, clusterId, before, head);
    t.deepEqual(
      delta.upserts.map(({ id }) => id),
      ['t1'],
    );
    sizes.push(encoded(delta).length);
  }
  t.is(sizes[0], sizes[1]);
});

test('history behind the floor is swept: an older node gets a snapshot, newer ones their difference', async (t) => {
  const clusterId = await addCluster(runtime);
  const pool = runtime.pools.channel;
  const sql = runtime.pools.api;
  const old = new ModelNode(clusterId);
  await old.heartbeat(pool);
  for (const body of ['1', '2', '3']) await publishThings(runtime, clusterId, [{ id: 'a', body }]);
  const recent = new ModelNode(clusterId);
  await recent.heartbeat(pool);
  for (const body of ['4', '5']) await publishThings(runtime, clusterId, [{ id: 'a', body }]);
  // Everything up to the third publication happened eight days ago.
  const floor = recent.config.revision;
  await sql.raw(
    `update config_revision set created_at = now() - interval '8 days' where cluster_id = ? and number <= ?`,
    [clusterId, String(floor)],
  );
  await raiseDeltaFloors(sql);
  t.is((await readConfigHead(pool, clusterId))!.deltaFloor, floor);
  await sweepEntries(sql);
  await sweepRevisions(sql);
  // People see these revisions, so what they ran is kept whatever the floor.
  const rows = await sql('config_entry').where({ cluster_id: clusterId, resource_id: 'a' }).orderBy('from_revision');
  t.deepEqual(
    rows.map((row: { from_revision: string }) => Number(row.from_revision) - Number(floor)),
    [-2, -1, 0, 1, 2],
  );
  await recent.heartbeat(pool);
  t.is(recent.pulls[0], 'delta');
  await old.heartbeat(pool);
  t.not(old.pulls[0], 'delta');
  t.deepEqual(heldThings(old.entries), await expectedThings(runtime, clusterId));
});

test.serial('settings stay while one of the 200 listed revisions ran them, and go afterwards', async (t) => {
  const clusterId = await addCluster(runtime);
  const sql = runtime.pools.api;
  const of = (version: number) => ({ version, clusterId });
  for (const version of [1, 2]) {
    await publishThings(runtime, clusterId, [{ id: 'a', body: `${version}`, settings: of(version) }]);
  }
  const head = sql('cluster_head').where({ cluster_id: clusterId });
  await sql.raw("update config_settings set touched_at = now() - interval '25 hours'");
  const swept = async (): Promise<number[]> => {
    await sweepEntries(sql);
    await sweepSettings(sql);
    const rows = await sql('config_settings').whereLike('settings', `%${clusterId}%`);
    return rows.map(({ settings }) => JSON.parse(settings).version).sort();
  };
  // The first version ran at revision 2 and was closed by revision 3.
  await head.clone().update({ delta_floor: 3 });
  t.deepEqual(await swept(), [1, 2]);
  await head.clone().update({ revision: 201 });
  t.deepEqual(await swept(), [1, 2], 'revision 2 is the oldest listed');
  await head.clone().update({ revision: 202 });
  t.deepEqual(await swept(), [2], 'revision 2 is not listed any more');
});

test('the floor does not rise above a revision younger than 15 minutes', async (t) => {
  const clusterId = await addCluster(runtime);
  for (const body of ['1', '2', '3']) await publishThings(runtime, clusterId, [{ id: 'a', body }]);
  await raiseDeltaFloors(runtime.pools.api);
  t.is((await readConfigHead(runtime.pools.channel, clusterId))!.deltaFloor, 0n);
});

test.serial('a blob that nobody uses goes after a day, and comes back with the entry that needs it', async (t) => {
  const clusterId = await addCluster(runtime);
  const sql = runtime.pools.api;
  const body = `unique ${clusterId}`;
  await publishThings(runtime, clusterId, [{ id: 'a', body }]);
  await sql.raw("update config_blob set touched_at = now() - interval '25 hours'");
  await sweepBlobs(sql);
  const count = async () => (await sql('config_blob').where({ body: Buffer.from(body) })).length;
  t.is(await count(), 1);
  await sql('config_entry').where({ cluster_id: clusterId, resource_id: 'a' }).delete();
  await sweepBlobs(sql);
  t.is(await count(), 0);
  await publishThings(runtime, clusterId, [{ id: 'b', body }]);
  t.is(await count(), 1);
});

test('there is no answer for a cluster that does not exist', async (t) => {
  t.is(await answerGetConfig(runtime.pools.channel, 'nobody', Track.STABLE, create(GetConfigRequestSchema, {})), null);
});
