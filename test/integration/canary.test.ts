// Canaries at the pipeline: which entries nodes of a canary and all others run, through any history.
import { toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { errorCodeOf } from '../../contract/errors.ts';
import { abortCanary, promoteCanary } from '../../models/canary/finish.ts';
import { readConfigDelta } from '../../models/config-delta.ts';
import { headOn, readConfigHead } from '../../models/config-history.ts';
import { readConfigPage } from '../../models/config-page.ts';
import { beginEpoch } from '../../models/epoch.ts';
import { ConfigDeltaSchema, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { systemCall } from '../../runtime/call.ts';
import { judgeClaim } from '../../runtime/history.ts';
import { positionMarks } from '../../runtime/position-marks.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { rollBack } from '../../services/revisions/rollback.ts';
import {
  addNode,
  bodyOf,
  canaryCluster,
  converge,
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

const promote = (clusterId: string) =>
  change(runtime, (tx) => promoteCanary(tx, clusterId, 'manual_promote'), { clusterId });
const abort = (clusterId: string) => change(runtime, (tx) => abortCanary(tx, clusterId, 'manual_abort'), { clusterId });
const texts = (things: ReadonlyMap<string, Settings>) =>
  Object.fromEntries([...things].map(([id, settings]) => [id, bodyOf(settings)]).sort());

/** What the rules say that nodes run. */
class Model {
  readonly saved = new Map<string, Settings>();
  readonly stable = new Map<string, Settings>();
  /** What the canary has over the stable things; null where it has none of the name. */
  readonly overlay = new Map<string, Settings | null>();
  /** What was stable at each revision that nodes could be told to run. */
  readonly published = new Map<string, Map<string, Settings>>();
  enabled = false;
  running = false;

  get candidate(): Map<string, Settings> {
    const all = new Map(this.stable);
    for (const [id, settings] of this.overlay) {
      if (settings) all.set(id, settings);
      else all.delete(id);
    }
    return all;
  }

  save(id: string, settings: Settings | null): void {
    this.#set(this.saved, id, settings);
    if (!this.enabled && !this.running) {
      this.#set(this.stable, id, settings);
      return;
    }
    const stable = this.stable.get(id);
    if (stable && settings && stable.on !== settings.on) this.stable.set(id, { ...stable, on: settings.on });
    this.#over(id, settings);
  }

  /** Deleted with its owner: everywhere at once. */
  end(id: string): void {
    for (const things of [this.saved, this.stable]) things.delete(id);
    this.#over(id, null);
  }

  promote(): void {
    const all = this.candidate;
    this.stable.clear();
    for (const [id, settings] of all) this.stable.set(id, settings);
    this.abort();
  }

  rollBack(revision: string): void {
    const then = [...this.published.get(revision)!];
    this.stable.clear();
    for (const [id, settings] of then) this.stable.set(id, settings);
    this.abort();
  }

  abort(): void {
    this.overlay.clear();
    this.running = false;
  }

  #over(id: string, settings: Settings | null): void {
    const stable = this.stable.get(id);
    const same = settings === null ? !stable : stable !== undefined && bodyOf(stable) === bodyOf(settings);
    if (same) this.overlay.delete(id);
    else this.overlay.set(id, settings);
    this.running = this.overlay.size > 0;
  }

  #set(things: Map<string, Settings>, id: string, settings: Settings | null): void {
    if (settings) things.set(id, settings);
    else things.delete(id);
  }
}

const ID = fc.constantFrom('a', 'b', 'c', 'd/x', 'd/y');
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant('save' as const),
      id: ID,
      version: fc.integer({ min: 1, max: 4 }),
      on: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('remove' as const), id: ID }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('end' as const, 'promote' as const, 'abort' as const) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('policy' as const), enabled: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('rollback' as const), to: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('epoch' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function take(clusterId: string, model: Model, taken: Step): Promise<void> {
  switch (taken.act) {
    case 'save': {
      const settings = { version: taken.version, on: taken.on };
      await save(runtime, clusterId, taken.id, settings);
      return model.save(taken.id, settings);
    }
    case 'remove':
      await save(runtime, clusterId, taken.id, null);
      return model.save(taken.id, null);
    case 'end':
      await runtime.pools.api('test_thing').where({ cluster_id: clusterId }).whereLike('id', 'd/%').delete();
      await save(runtime, clusterId, 'd/x', null, true);
      for (const id of ['d/x', 'd/y']) model.end(id);
      return;
    case 'policy':
      if (!taken.enabled && model.running) {
        await promote(clusterId);
        model.promote();
      }
      await setPolicy(runtime, clusterId, taken.enabled);
      model.enabled = taken.enabled;
      return;
    case 'rollback': {
      const revisions = [...model.published.keys()];
      const revision = revisions[taken.to % Math.max(1, revisions.length)];
      if (revision === undefined) return;
      await rollBack(runtime, { id: clusterId, revision }, systemCall('test'));
      return model.rollBack(revision);
    }
    case 'epoch':
      await beginEpoch(runtime.pools.api, 'test');
      return;
    default:
      if (!model.running) return;
      if (taken.act === 'promote') {
        await promote(clusterId);
        model.promote();
      } else {
        await abort(clusterId);
        model.abort();
      }
  }
}

test('whatever happens, each node runs exactly the versions of its track', async (t) => {
  let trial = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(step, fc.nat({ max: 15 })), { minLength: 4, maxLength: 22 }),
      async (history) => {
        const clusterId = await addCluster(runtime);
        await addNode(runtime, clusterId, `tries-${++trial}`, { isCanary: true });
        const model = new Model();
        const nodes = Array.from({ length: 4 }, () => new ModelNode(clusterId));
        for (const [taken, awake] of history) {
          await take(clusterId, model, taken);
          const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
          t.is(head.canary !== null, model.running);
          model.published.set(String(head.revision), new Map(model.stable));
          // Two nodes of the canary and two others, of which some are away.
          for (const [at, node] of nodes.entries()) {
            if (((awake >> at) & 1) === 0) continue;
            const tries = at % 2 === 0;
            await converge(runtime, node, tries ? Track.CANARY : Track.STABLE);
            t.deepEqual(thingsOf(node), texts(tries ? model.candidate : model.stable));
          }
        }
        for (const [at, node] of nodes.entries()) {
          const tries = at % 2 === 0;
          await converge(runtime, node, tries ? Track.CANARY : Track.STABLE);
          t.deepEqual(thingsOf(node), texts(tries ? model.candidate : model.stable));
          // A node without anything gets the same.
          const fresh = new ModelNode(clusterId);
          await converge(runtime, fresh, tries ? Track.CANARY : Track.STABLE);
          t.deepEqual(thingsOf(fresh), thingsOf(node));
        }
      },
    ),
    { numRuns: 25 },
  );
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
  await promote(clusterId);
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
  const results = await Promise.allSettled([promote(clusterId), abort(clusterId)]);
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
