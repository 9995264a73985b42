// Canaries at the pipeline: how they begin and end, and which entries nodes of one and all others get.
import { toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { errorCodeOf } from '../../contract/errors.ts';
import { readConfigDelta } from '../../models/config/config-delta.ts';
import { headOn, readConfigHead } from '../../models/config/config-history.ts';
import { readConfigPage } from '../../models/config/config-page.ts';
import { promoteCanary, promoteNext } from '../../models/rollouts/finish-canary.ts';
import { judgeClaim } from '../../pipeline/history.ts';
import { positionMarks } from '../../pipeline/position-marks.ts';
import { ConfigDeltaSchema, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  abort,
  addNode,
  bodyOf,
  canaryCluster,
  converge,
  promote,
  rolloutOf,
  type Settings,
  save,
  setPolicy,
  switchThings,
  thingsOf,
  unswitch,
} from '../helpers/canary-cluster.ts';
import { ModelNode } from '../helpers/model-node.ts';
import { addCluster, change, createPipeline, type Pipeline, THING } from '../helpers/pipeline.ts';

let pipeline: Pipeline;
let runtime: Runtime;

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
  switchThings();
});
test.after.always(async () => {
  unswitch();
  await pipeline?.close();
});

test('the first change begins a canary, further ones replace its candidate, window and members stay', async (t) => {
  const clusterId = await canaryCluster(runtime, 'first');
  const { revision: stable } = (await readConfigHead(runtime.pools.channel, clusterId))!;
  t.is(await save(runtime, clusterId, 'a', { version: 1, on: false }), String(stable + 1n));
  const begun = await rolloutOf(runtime, clusterId);
  t.like(begun, { state: 'canary', stable_revision: String(stable), candidate_revision: String(stable + 1n) });
  t.is(begun.window_ends_at.getTime() - begun.window_started_at.getTime(), 300_000);
  await addNode(runtime, clusterId, 'late', { isCanary: true });
  t.is(await save(runtime, clusterId, 'b', { version: 1, on: false }), String(stable + 2n));
  const moved = await rolloutOf(runtime, clusterId);
  t.like(moved, { state: 'canary', candidate_revision: String(stable + 2n), window_ends_at: begun.window_ends_at });
  const members = await runtime.pools.api('rollout_member').where({ cluster_id: clusterId });
  t.deepEqual(
    members.map(({ node_id }) => node_id),
    ['first'],
  );
});

test('what is taken back to what everybody runs ends the canary as withdrawn', async (t) => {
  const clusterId = await canaryCluster(runtime, 'withdrawn');
  await save(runtime, clusterId, 'a', { version: 1, on: false });
  await save(runtime, clusterId, 'a', null);
  t.like(await rolloutOf(runtime, clusterId), { state: 'rolled_back', outcome: 'withdrawn', candidate_revision: null });
  t.is((await readConfigHead(runtime.pools.channel, clusterId))!.canary, null);
});

test('without a node that can try it a change goes to everybody, which is audited', async (t) => {
  const clusterId = await addCluster(runtime);
  await addNode(runtime, clusterId, 'offline', { isCanary: true, online: false });
  await addNode(runtime, clusterId, 'unable', { isCanary: true, features: ['canary-v1'] });
  await addNode(runtime, clusterId, 'old', { isCanary: true, features: ['every-third-v1'] });
  await addNode(runtime, clusterId, 'other', { isCanary: false });
  await setPolicy(runtime, clusterId, true);
  const revision = await save(runtime, clusterId, 'a', { version: 3, on: false });
  const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
  t.is(head.canary, null);
  t.is(String(head.revision), revision!);
  t.like(await rolloutOf(runtime, clusterId), { state: 'direct', outcome: 'no_canary' });
  const audits = await runtime.pools
    .api('audit_entry')
    .where({ action: 'cluster.rollout_direct', target_id: clusterId });
  t.is(audits.length, 1);
  const events = await runtime.pools.api('rollout_event').where({ cluster_id: clusterId });
  t.like(events[0], { kind: 'direct', revision: revision!, outcome: 'no_canary' });
});

test('a change that does not wait begins no canary', async (t) => {
  const clusterId = await addCluster(runtime);
  await addNode(runtime, clusterId, 'switched', { isCanary: true });
  await save(runtime, clusterId, 'a', { version: 1, on: false });
  await setPolicy(runtime, clusterId, true);
  await save(runtime, clusterId, 'a', { version: 1, on: true });
  t.is((await readConfigHead(runtime.pools.channel, clusterId))!.canary, null);
  t.is((await rolloutOf(runtime, clusterId)).state, 'idle');
});

test('nodes of a canary that is promoted already run what everybody gets: nothing is sent to them', async (t) => {
  const clusterId = await canaryCluster(runtime, 'nothing');
  for (const id of ['a', 'b']) await save(runtime, clusterId, id, { version: 1, on: false });
  const pool = runtime.pools.channel;
  const before = headOn((await readConfigHead(pool, clusterId))!, Track.CANARY);
  await promote(runtime, clusterId);
  const after = (await readConfigHead(pool, clusterId))!;
  const delta = await readConfigDelta(pool, clusterId, before, after);
  t.is(delta.upserts.length + delta.deletes.length, 0);
  t.deepEqual(Buffer.from(delta.setHash), Buffer.from(before.setHash));
  t.true(toBinary(ConfigDeltaSchema, delta).length < 200);
});

test('a snapshot of what a canary runs has what it has over the stable entries', async (t) => {
  const clusterId = await addCluster(runtime);
  await addNode(runtime, clusterId, 'pages', { isCanary: true });
  for (const id of ['a', 'b', 'c']) await save(runtime, clusterId, id, { version: 1, on: false });
  await setPolicy(runtime, clusterId, true);
  await save(runtime, clusterId, 'b', { version: 2, on: false });
  await save(runtime, clusterId, 'c', null);
  await save(runtime, clusterId, 'd', { version: 1, on: false });
  const read = async (track: Track) => {
    const page = (await readConfigPage(runtime.pools.channel, clusterId, track, ''))!;
    const things = page.entries.filter(({ kind }) => kind === THING);
    return things.map(({ id, body }) => `${id}${(JSON.parse(Buffer.from(body).toString()) as Settings).version}`);
  };
  t.deepEqual(await read(Track.STABLE), ['a1', 'b1', 'c1']);
  t.deepEqual(await read(Track.CANARY), ['a1', 'b2', 'd1']);
});

test('promote and abort at once: one of them is told that no canary runs', async (t) => {
  const clusterId = await canaryCluster(runtime, 'both');
  await save(runtime, clusterId, 'a', { version: 1, on: false });
  const results = await Promise.allSettled([promote(runtime, clusterId), abort(runtime, clusterId)]);
  t.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  const refused = results.find((result) => result.status === 'rejected');
  t.is(errorCodeOf(refused!.reason), 'ROLLOUT_NOT_ACTIVE');
});

test('a database restored to before a canary begins a new history, and who tried it runs what everybody does', async (t) => {
  const clusterId = await canaryCluster(runtime, 'restored');
  const pool = runtime.pools.channel;
  const before = (await readConfigHead(pool, clusterId))!;
  await save(runtime, clusterId, 'a', { version: 1, on: false });
  const node = new ModelNode(clusterId);
  await converge(runtime, node, Track.CANARY);
  const place = { ...node.config, setHash: node.setHash() };
  const claim = { ...place, mark: (await positionMarks(runtime)).config(clusterId, place) };
  const sql = runtime.pools.api;
  for (const further of [false, true]) {
    await sql('cluster_head').where({ cluster_id: clusterId }).update({ canary_revision: null, canary_set_hash: null });
    await sql('config_entry').where({ cluster_id: clusterId, track: 'C' }).delete();
    await sql('config_revision')
      .where({ cluster_id: clusterId, number: String(place.revision) })
      .delete();
    await sql('cluster_rollout').where({ cluster_id: clusterId }).update({ enabled: false, candidate_revision: null });
    // The number of the candidate is given away again.
    if (further) await save(runtime, clusterId, 'b', { version: 2, on: false });
    const epoch = (await readConfigHead(pool, clusterId))!.epoch;
    const now = { ...claim, epoch };
    const proven = { ...now, mark: (await positionMarks(runtime)).config(clusterId, now) };
    const { began } = await judgeClaim(runtime, { clusterId, config: further ? proven : claim });
    t.true(began || epoch > before.epoch, 'it was told by the number or the hash');
    await converge(runtime, node, Track.STABLE);
    t.deepEqual(thingsOf(node), further ? { b: bodyOf({ version: 2, on: false }) } : {});
  }
});

test('a canary of many entries is promoted in pieces, between which changes go to everybody and nothing ends it', async (t) => {
  const clusterId = await canaryCluster(runtime, 'pieces');
  const ids = ['a', 'b', 'c', 'd', 'e'];
  for (const id of ids) await save(runtime, clusterId, id, { version: 1, on: false });
  const pool = runtime.pools.channel;
  const node = new ModelNode(clusterId);
  await converge(runtime, node, Track.CANARY);
  const other = new ModelNode(clusterId);
  await change(runtime, (tx) => promoteCanary(tx, clusterId, 'manual_promote', 2), { clusterId });
  t.like(await rolloutOf(runtime, clusterId), { state: 'canary', promoting: 'manual_promote', outcome: null });
  await converge(runtime, other, Track.STABLE);
  t.is(Object.keys(thingsOf(other)).length, 2);
  for (const end of [abort, promote]) {
    const error = await t.throwsAsync(end(runtime, clusterId));
    t.is(errorCodeOf(error), 'ROLLOUT_NOT_ACTIVE');
  }
  await save(runtime, clusterId, 'e', { version: 2, on: false });
  await save(runtime, clusterId, 'f', { version: 1, on: false });
  const open = await runtime.pools.api('config_entry').where({ cluster_id: clusterId, track: 'C', to_revision: null });
  t.is(open.length, 2, 'what was saved is tried no more');
  await converge(runtime, node, Track.CANARY);
  const next = () => change(runtime, (tx) => promoteNext(tx, clusterId, 1), { clusterId });
  t.true((await next()).output);
  t.false((await next()).output);
  t.false((await next()).output, 'there is nothing left to promote');
  t.like(await rolloutOf(runtime, clusterId), { state: 'promoted', promoting: null, outcome: 'manual_promote' });
  t.is((await readConfigHead(pool, clusterId))!.canary, null);
  await converge(runtime, other, Track.STABLE);
  await converge(runtime, node, Track.STABLE);
  const expected = [...ids, 'f'].map((id) => [id, bodyOf({ version: id === 'e' ? 2 : 1, on: false })]);
  t.deepEqual(thingsOf(other), Object.fromEntries(expected));
  t.deepEqual(thingsOf(node), thingsOf(other));
  const { rows } = await runtime.pools.api.raw(
    "select count(*)::int as count from config_bucket where cluster_id = ? and track = 'C'",
    [clusterId],
  );
  t.is(rows[0].count, 0);
});
