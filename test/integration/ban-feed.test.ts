// The ban feed under concurrent writers: a reader that follows numbers misses nothing.
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { answerGetBans, readBanChanges, readBanTarget } from '../../models/bans/ban-feed.ts';
import { nextBanSeq, recordBanChanges } from '../../models/bans/ban-numbers.ts';
import { purgeBanChanges, purgeBans } from '../../models/db/sweeps.ts';
import { GetBansRequestSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { ModelNode } from '../helpers/model-node.ts';
import { addCluster, ban, change, createPipeline, expectedBans, lift, type Pipeline } from '../helpers/pipeline.ts';

let pipeline: Pipeline;
let runtime: Runtime;
let serial = 0;

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
});
test.after.always(() => pipeline?.close());

/** An id and an address nobody has used. */
function fresh(): { id: string; cidr: string } {
  serial++;
  return { id: `b${serial}`, cidr: `198.18.${Math.floor(serial / 250) % 250}.${serial % 250}/32` };
}

test('a reader sees every change once it has a number, in order, while writers commit, wait and roll back', async (t) => {
  const other = await pipeline.another();
  const clusterId = await addCluster(runtime);
  const pool = runtime.pools.channel;
  let writing = true;
  const committed: string[] = [];
  const write = async (writer: number) => {
    for (let index = 0; index < 15; index++) {
      const { id, cidr } = fresh();
      const where = writer % 2 ? clusterId : null;
      if ((writer + index) % 5 === 0) {
        await t.throwsAsync(
          change(
            runtime,
            async (tx) => {
              const number = await nextBanSeq(tx);
              const keepUntil = new Date(Date.now() + 3_600_000);
              await recordBanChanges(tx, [{ banId: id, clusterId: where, keepUntil, number }]);
              throw new Error('rolled back');
            },
            { pool: 'bans' },
          ),
          { message: 'rolled back' },
        );
      } else {
        await ban(writer % 3 ? runtime : other.runtime, id, cidr, where);
        committed.push(id);
      }
    }
  };
  const seen: string[] = [];
  let position = (await readBanTarget(pool, clusterId)).sequence;
  const rowsUpTo = async (place: bigint) => {
    const { rows } = await pool.query<{ seq: string }>(
      "select seq from ban_change where seq <= $1 and cluster_id in ($2, '')",
      [place.toString(), clusterId],
    );
    return new Set(rows.map(({ seq }) => seq));
  };
  let known = await rowsUpTo(position);
  const read = async () => {
    const batch = await readBanChanges(pool, clusterId, position, 7);
    if (!batch) return false;
    t.is(batch.from, position);
    t.true(batch.to > position);
    position = batch.to;
    seen.push(...batch.upserts.map(({ id }) => id), ...batch.removedIds);
    // No row at or below a place that was passed appears later.
    const now = await rowsUpTo(position);
    const late = [...now].filter((seq) => !known.has(seq) && BigInt(seq) <= batch.from);
    t.deepEqual(late, []);
    known = now;
    return true;
  };
  const reader = (async () => {
    while (writing) if (!(await read())) await new Promise((resolve) => setTimeout(resolve, 1));
    while (await read());
  })();
  try {
    await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
    writing = false;
    await reader;
    // Other tests of this file ban as well.
    const mine = new Set(committed);
    t.deepEqual(seen.filter((id) => mine.has(id)).toSorted(), committed.toSorted());
  } finally {
    writing = false;
    await other.close();
  }
});

const step = fc.oneof(
  fc.record({ act: fc.constant('ban' as const), slot: fc.integer({ min: 0, max: 5 }) }),
  fc.record({ act: fc.constant('lift' as const), slot: fc.integer({ min: 0, max: 5 }) }),
  fc.record({ act: fc.constant('pull' as const), slot: fc.integer({ min: 0, max: 2 }) }),
);

test('any history of bans and lifts leaves a node that pulls now and then with the active bans', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (history) => {
      const clusters = [await addCluster(runtime), await addCluster(runtime)];
      const nodes = [...clusters, clusters[0]!].map((id) => new ModelNode(id));
      const slots = Array.from({ length: 6 }, () => fresh());
      const placeOf = (slot: number) => [null, clusters[0]!, clusters[1]!][slot % 3]!;
      const pool = runtime.pools.channel;
      for (const { act, slot } of history) {
        const { id, cidr } = slots[slot]!;
        if (act === 'ban') await ban(runtime, id, cidr, placeOf(slot));
        else if (act === 'lift') await lift(runtime, id, placeOf(slot));
        else await nodes[slot]!.heartbeat(pool);
      }
      for (const node of nodes) {
        await node.heartbeat(pool);
        const mine = new Set(slots.map(({ id }) => id));
        const held = [...node.bans.keys()].filter((id) => mine.has(id)).toSorted();
        const expected = (await expectedBans(runtime, node.clusterId)).filter((id) => mine.has(id));
        t.deepEqual(held, expected.toSorted());
      }
    }),
    { numRuns: 25 },
  );
});

test.serial('a position of another epoch, and one ahead of the console, get everything with reset', async (t) => {
  const clusterId = await addCluster(runtime);
  const { id, cidr } = fresh();
  await ban(runtime, id, cidr, clusterId);
  const pool = runtime.pools.channel;
  const target = await readBanTarget(pool, clusterId);
  const ask = (after?: { epoch: bigint; sequence: bigint }) =>
    answerGetBans(pool, clusterId, create(GetBansRequestSchema, { limit: 5000, ...(after ? { after } : {}) }));
  for (const after of [
    undefined,
    { epoch: target.epoch - 1n, sequence: target.sequence },
    { epoch: target.epoch, sequence: target.sequence + 1n },
  ]) {
    const answer = await ask(after);
    t.true(answer.reset);
    t.true(answer.upserts.some((found) => found.id === id));
    t.is(answer.position!.sequence, target.sequence);
  }
  const current = await ask(target);
  t.false(current.reset);
  t.is(current.upserts.length + current.removedIds.length, 0);
});

test('changes and bans that no node can need any more are purged, and an old position still converges', async (t) => {
  const clusterId = await addCluster(runtime);
  const pool = runtime.pools.channel;
  const node = new ModelNode(clusterId);
  await node.heartbeat(pool);
  const [ended, active] = [fresh(), fresh()];
  await ban(runtime, ended.id, ended.cidr, clusterId);
  await ban(runtime, active.id, active.cidr, clusterId);
  const sql = runtime.pools.api;
  await sql('ban')
    .where({ id: ended.id })
    .update({ expires_at: sql.raw("now() - interval '61 minutes'") });
  await sql('ban_change')
    .where({ ban_id: ended.id })
    .update({ keep_until: sql.raw("now() - interval '1 minute'") });
  await purgeBans(sql);
  await purgeBanChanges(sql);
  t.is((await sql('ban').where({ id: ended.id })).length, 0);
  t.is((await sql('ban_change').where({ ban_id: ended.id })).length, 0);
  await node.heartbeat(pool);
  t.true(node.bans.has(active.id));
  t.false(node.bans.has(ended.id));
  t.false(node.pulls.includes('reset'));
});

test('a lifted automatic ban tells the nodes which of their own to end', async (t) => {
  const clusterId = await addCluster(runtime);
  const { id, cidr } = fresh();
  await ban(runtime, id, cidr, null);
  const sql = runtime.pools.api;
  await sql('ban').where({ id }).update({ source: 'auto', node_id: 'n1' });
  const before = BigInt(await lift(runtime, id, null)) - 1n;
  const batch = (await readBanChanges(runtime.pools.channel, clusterId, before))!;
  t.true(batch.removedIds.includes(id));
  t.is(batch.liftedOwn.length, 1);
  t.is(batch.liftedOwn[0]!.cidr, cidr);
});

test('a call announces the number of its ban under the epoch', async (t) => {
  const { id } = fresh();
  const { output, changes } = await change(
    runtime,
    async (tx) => {
      const number = await nextBanSeq(tx);
      await recordBanChanges(tx, [{ banId: id, clusterId: null, keepUntil: new Date(), number }]);
      return number;
    },
    { pool: 'bans' },
  );
  t.deepEqual(changes, [`ban=${output.epoch}:${output.seq}`]);
});
