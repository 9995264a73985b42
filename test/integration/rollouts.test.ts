// Canaries and what was published directly, as the jobs look at them. Each look is at all clusters, so one test at a time.
import test from 'ava';
import { readConfigHead } from '../../models/config/config-history.ts';
import { writeVitals } from '../../models/rollouts/vital.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { previewRollback } from '../../services/revisions/rollback.ts';
import { evaluateCanaries } from '../../services/rollouts/evaluate.ts';
import { undoHarm } from '../../services/rollouts/undo.ts';
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
import { addCluster, createPipeline, type Pipeline, THING } from '../helpers/pipeline.ts';

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

/** What nodes said of the site in the slot of now, and of their whole traffic. */
async function report(
  clusterId: string,
  track: 'S' | 'C',
  revision: string,
  siteId: string,
  failing: number,
): Promise<void> {
  const row = { requests: 200, origin5xx: failing, edge5xx: 0, edgeCodes: {}, restarts: 0, failed: 0, nodes: 1 };
  const slot = Math.floor(Date.now() / 5000) * 5000;
  const of = { clusterId, slot, track, revision: BigInt(revision) };
  const sites = new Set([siteId, '']);
  const rows = [...sites].map((id) => ({ ...of, ...row, siteId: id }));
  await writeVitals(runtime.pools.channel, `test-${track}`, rows);
}

const NEVER = new AbortController().signal;

/** Nodes say that they run what they should. */
async function arrive(ids: readonly string[], more: object = {}): Promise<void> {
  const { rows } = await runtime.pools.api.raw(
    `select t.node_id, t.epoch, t.track, t.revision from node_target t where t.node_id = any(?)`,
    [ids as never],
  );
  for (const { node_id, ...at } of rows) {
    await runtime.pools
      .api('node_state')
      .where({ node_id })
      .update({ ...at, data_plane_healthy: true, last_seen_at: new Date(), ...more });
  }
}

test.serial(
  'a canary whose nodes are well is promoted at the end of its window, by whichever leader looks first',
  async (t) => {
    const clusterId = await canaryCluster(runtime, 'well');
    await save(runtime, clusterId, 'a', { version: 1, on: false });
    await arrive(['well']);
    await evaluateCanaries(runtime, NEVER, 20_000);
    t.is((await rolloutOf(runtime, clusterId)).state, 'canary');
    await runtime.pools
      .api('node_state')
      .where({ node_id: 'well' })
      .update({ last_seen_at: new Date(Date.now() + 300_000) });
    await Promise.all([evaluateCanaries(runtime, NEVER, 301_000), evaluateCanaries(runtime, NEVER, 301_000)]);
    t.like(await rolloutOf(runtime, clusterId), { state: 'promoted', outcome: 'auto_promote' });
    const events = await runtime.pools.api('rollout_event').where({ cluster_id: clusterId }).orderBy('id');
    t.deepEqual(
      events.map(({ kind }) => kind),
      ['started', 'promoted'],
    );
  },
);

test.serial(
  'the preview of a rollback says that nodes change while a canary runs, because the rollback ends it',
  async (t) => {
    const clusterId = await canaryCluster(runtime, 'previewed');
    const { revision } = (await readConfigHead(runtime.pools.channel, clusterId))!;
    const preview = () => previewRollback(runtime, { id: clusterId, revision: String(revision) });
    t.true((await preview()).unchanged);
    await save(runtime, clusterId, 'a', { version: 1, on: false });
    t.like(await preview(), { unchanged: false, entryCount: 0 });
  },
);

test.serial('a canary ends by itself when visitors of its nodes suffer, with the figure that moved', async (t) => {
  const clusterId = await canaryCluster(runtime, 'suffers');
  const revision = (await save(runtime, clusterId, 'a', { version: 1, on: false }))!;
  await arrive(['suffers']);
  const [watch] = await runtime.pools.api('vital_watch').where({ cluster_id: clusterId });
  t.like(watch, { site_id: '', revision, track: 'C' });
  await runtime.pools.api('vital_watch').where({ cluster_id: clusterId }).update({ origins: true });
  await report(clusterId, 'S', String(BigInt(revision) - 1n), '', 1);
  await report(clusterId, 'C', revision, '', 150);
  await evaluateCanaries(runtime, NEVER);
  const ended = await rolloutOf(runtime, clusterId);
  t.like(ended, { state: 'rolled_back', outcome: 'error_ratio' });
  t.like(ended.finding, { reason: 'error_ratio', figure: 'origin_5xx', now: 0.75 });
  t.is((await readConfigHead(runtime.pools.channel, clusterId))!.canary, null);
});

test.serial(
  'an entry of the candidate that a node cannot apply ends it; one that failed before does not',
  async (t) => {
    const clusterId = await addCluster(runtime);
    await addNode(runtime, clusterId, 'fails', { isCanary: true });
    await save(runtime, clusterId, 'old', { version: 1, on: false });
    await setPolicy(runtime, clusterId, true);
    await save(runtime, clusterId, 'a', { version: 1, on: false });
    const failing = (id: string) => JSON.stringify([{ kind: THING, id, running: true, reason: 'no' }]);
    await arrive(['fails'], { failed: failing('old') });
    await evaluateCanaries(runtime, NEVER);
    t.is((await rolloutOf(runtime, clusterId)).state, 'canary');
    await arrive(['fails'], { failed: failing('a') });
    await evaluateCanaries(runtime, NEVER);
    t.like(await rolloutOf(runtime, clusterId), { state: 'rolled_back', outcome: 'apply_failed' });
  },
);

async function undoing(id: string): Promise<string> {
  const clusterId = await addCluster(runtime);
  await addNode(runtime, clusterId, id, { isCanary: false });
  for (const thing of ['a', 'b', 'c', 'd', 'e']) await save(runtime, clusterId, thing, { version: 1, on: false });
  await runtime.pools.api('cluster_rollout').where({ cluster_id: clusterId }).update({ undo_direct: true });
  return clusterId;
}

const running = async (clusterId: string) => {
  const node = new ModelNode(clusterId);
  await converge(runtime, node, Track.STABLE);
  return thingsOf(node);
};

test.serial('a change to everybody that does harm is taken back once, its entries alone', async (t) => {
  const clusterId = await undoing('undone');
  const revision = (await save(runtime, clusterId, 'a', { version: 2, on: false }))!;
  await save(runtime, clusterId, 'b', { version: 2, on: false });
  await runtime.pools.api('vital_watch').where({ cluster_id: clusterId, revision }).update({ origins: true });
  await report(clusterId, 'S', String(BigInt(revision) - 1n), '', 0);
  await report(clusterId, 'S', revision, '', 190);
  await Promise.all([undoHarm(runtime, NEVER), undoHarm(runtime, NEVER)]);
  const [undone, ...others] = await runtime.pools.api('rollout_event').where({ cluster_id: clusterId, kind: 'undone' });
  t.deepEqual(others, []);
  t.like(undone.finding, { reason: 'error_ratio', figure: 'origin_5xx' });
  const now = await running(clusterId);
  t.is(now.a, bodyOf({ version: 1, on: false }));
  t.is(now.b, bodyOf({ version: 2, on: false }), 'what another change did stays');
  await undoHarm(runtime, NEVER);
  t.deepEqual(await running(clusterId), now);
});

test.serial('a change over which another one was made is not taken back', async (t) => {
  const clusterId = await undoing('over');
  const revision = (await save(runtime, clusterId, 'a', { version: 2, on: false }))!;
  await save(runtime, clusterId, 'a', { version: 4, on: false });
  await runtime.pools.api('vital_watch').where({ cluster_id: clusterId, revision }).update({ origins: true });
  await report(clusterId, 'S', String(BigInt(revision) - 1n), '', 0);
  await report(clusterId, 'S', revision, '', 190);
  await undoHarm(runtime, NEVER);
  t.is((await running(clusterId)).a, bodyOf({ version: 4, on: false }));
});

test.serial(
  'where changes of more than three sites do harm within five minutes nothing more is taken back',
  async (t) => {
    const clusterId = await undoing('many');
    const of = async (id: string, siteId: string) => {
      const revision = (await save(runtime, clusterId, id, { version: 2, on: false }))!;
      const watched = runtime.pools.api('vital_watch').where({ cluster_id: clusterId, revision });
      await watched.update({ site_id: siteId, origins: true });
      await report(clusterId, 'S', String(BigInt(revision) - 1n), siteId, 0);
      await report(clusterId, 'S', revision, siteId, 190);
      await undoHarm(runtime, NEVER);
    };
    for (const [index, id] of ['a', 'b', 'c', 'd'].entries()) await of(id, `site-${index}`);
    const events = await runtime.pools.api('rollout_event').where({ cluster_id: clusterId }).orderBy('id');
    t.deepEqual(
      events.map(({ kind }) => kind),
      ['undone', 'undone', 'undone', 'undo_stopped'],
    );
    const now = await running(clusterId);
    t.deepEqual(
      ['a', 'b', 'c', 'd'].map((id) => (JSON.parse(now[id]!) as Settings).version),
      [1, 1, 1, 2],
    );
  },
);
