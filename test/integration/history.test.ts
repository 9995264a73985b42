// A database that forgot what it had committed: restored, failed over with loss, or behind a node.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import pg from 'pg';
import { root } from '../../bin/lib/root.ts';
import { readBanTarget } from '../../models/bans/ban-feed.ts';
import { readConfigHead } from '../../models/config/config-history.ts';
import { readHistory } from '../../models/config/epoch.ts';
import { FeedActor } from '../../pipeline/feed-actor.ts';
import { checkHistory, judgeClaim, startNewEpoch } from '../../pipeline/history.ts';
import { positionMarks } from '../../pipeline/position-marks.ts';
import { startRelay } from '../../pipeline/relay.ts';
import { BanBatchSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import { ConfigDeltaSchema, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { FanoutWriter } from '../../runtime/fanout-stream.ts';
import type { Feed } from '../../runtime/feeds.ts';
import { reseal } from '../../runtime/reseal.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createSealer } from '../../runtime/sealer.ts';
import { fanoutStream } from '../../runtime/stream-names.ts';
import banFeed from '../../services/ban-fanout/ban-fanout.feed.ts';
import configFeed from '../../services/revision-fanout/revision-fanout.feed.ts';
import { eventually } from '../helpers/eventually.ts';
import { ModelNode } from '../helpers/model-node.ts';
import {
  addCluster,
  ban,
  createPipeline,
  expectedBans,
  expectedThings,
  heldThings,
  lift,
  type Pipeline,
  publishThings,
} from '../helpers/pipeline.ts';
import { createTestDatabase, redisPrefix, servers } from '../helpers/servers.ts';

test('a new epoch keeps numbers going, and nodes of the old one are repaired without a whole set', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const clusterId = await addCluster(runtime);
    const pool = runtime.pools.channel;
    const ids = ['a', 'b', 'c', 'd'];
    await publishThings(
      runtime,
      clusterId,
      ids.map((id) => ({ id, body: id })),
    );
    await ban(runtime, 'b1', '192.0.2.1/32', clusterId);
    const node = new ModelNode(clusterId);
    await node.heartbeat(pool);
    const before = (await readConfigHead(pool, clusterId))!;
    const bansBefore = await readBanTarget(pool, clusterId);
    t.true(await startNewEpoch(runtime, 'test', before.epoch.toString()));
    const after = (await readConfigHead(pool, clusterId))!;
    t.true(after.epoch > before.epoch);
    t.is(after.revision, before.revision);
    const bansAfter = await readBanTarget(pool, clusterId);
    t.is(bansAfter.epoch, after.epoch);
    t.true(bansAfter.sequence >= bansBefore.sequence + 1_000_000_000n);
    await node.heartbeat(pool);
    t.is(node.pulls[0], 'repair');
    t.is(node.config.epoch, after.epoch);
    t.true(node.bans.has('b1'));
    // The base of the new epoch is known: the next change is a difference.
    await publishThings(runtime, clusterId, [{ id: 'a', body: 'changed' }]);
    t.is((await readConfigHead(pool, clusterId))!.revision, after.revision + 1n);
    await node.heartbeat(pool);
    t.is(node.pulls[0], 'delta');
    // Whoever found the same reason under the old epoch does nothing.
    t.false(await startNewEpoch(runtime, 'test', before.epoch.toString()));
    t.is((await readConfigHead(pool, clusterId))!.epoch, after.epoch);
  } finally {
    await close();
  }
});

test('another server or timeline begins a new epoch at the next session, once', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const clusterId = await addCluster(runtime);
    const sql = runtime.pools.api;
    const { epoch, same } = await readHistory(sql);
    t.true(same);
    await checkHistory(runtime);
    t.is((await readHistory(sql)).epoch, epoch);
    for (const replaced of [{ system_identifier: '1' }, { timeline: 99 }]) {
      const old = (await readHistory(sql)).epoch;
      await sql('console_state').update(replaced);
      t.false((await readHistory(sql)).same);
      await Promise.all([checkHistory(runtime), checkHistory(runtime), checkHistory(runtime)]);
      const now = await readHistory(sql);
      t.true(now.same);
      t.true(BigInt(now.epoch) > BigInt(old));
      t.is((await readConfigHead(runtime.pools.channel, clusterId))!.epoch.toString(), now.epoch);
      await checkHistory(runtime);
      t.is((await readHistory(sql)).epoch, now.epoch);
    }
  } finally {
    await close();
  }
});

const NOTHING = new Set<string>();

test('a node ahead of the database begins a new epoch with the mark of the place that is forgotten, and only with it', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const clusterId = await addCluster(runtime);
    const pool = runtime.pools.channel;
    const head = (await readConfigHead(pool, clusterId))!;
    const marks = await positionMarks(runtime);
    const { epoch, revision, setHash } = head;
    const config = (place: object, of = clusterId) => {
      const claimed = { epoch, track: Track.STABLE, revision, setHash, ...place };
      return { ...claimed, mark: marks.config(of, claimed) };
    };
    const bans = (place: object, of = clusterId) => {
      const claimed = { epoch, sequence: 0n, ...place };
      return { ...claimed, mark: marks.feed('bans', of, claimed) };
    };
    const ahead = { revision: revision + 1n };
    const mark = new Uint8Array();

    // Where the database has been, whatever the mark.
    for (const claim of [
      { config: config({}), feeds: new Map([['bans', bans({})]]) },
      { config: { ...config({}), mark } },
    ]) {
      t.deepEqual(await judgeClaim(runtime, { clusterId, ...claim }), { unproven: NOTHING, began: false });
    }
    t.like(await judgeClaim(runtime, { clusterId, config: config({ epoch: epoch - 1n, revision: 999n }) }), {
      began: false,
    });
    // Ahead of it, and what is no proof: no mark, one of another place, one of another cluster.
    for (const unproven of [
      { ...config(ahead), mark },
      { ...config({}), ...ahead },
      config(ahead, 'another cluster'),
      { ...config({ epoch: epoch + 1n }), mark },
    ]) {
      const verdict = await judgeClaim(runtime, { clusterId, config: unproven });
      t.deepEqual(verdict, { unproven: new Set(['config']), began: false });
    }
    for (const unproven of [
      { ...bans({ sequence: 5n }), mark },
      { ...bans({}), sequence: 5n },
      bans({ sequence: 5n }, 'another cluster'),
      { ...bans({ epoch: 2n ** 64n - 1n }), mark },
    ]) {
      const verdict = await judgeClaim(runtime, { clusterId, feeds: new Map([['bans', unproven]]) });
      t.deepEqual(verdict, { unproven: new Set(['bans']), began: false });
    }
    t.is((await readConfigHead(pool, clusterId))!.epoch, epoch);

    // What the console gave and the database does not have: numbers, another set of the same number, an epoch.
    let last = epoch;
    const restarts = async (what: string, claim: object) => {
      t.deepEqual(await judgeClaim(runtime, { clusterId, ...claim }), { unproven: NOTHING, began: true }, what);
      // Each place is of the epoch before now.
      t.deepEqual(await judgeClaim(runtime, { clusterId, ...claim }), { unproven: NOTHING, began: false }, what);
      const now = (await readConfigHead(pool, clusterId))!.epoch;
      t.true(now > last, what);
      last = now;
    };
    await restarts('a revision', { config: config(ahead) });
    await restarts('a number of a ban', {
      feeds: new Map([['bans', bans({ epoch: last, sequence: 9_000_000_000_000n })]]),
    });
    await restarts('a set', { config: config({ epoch: last, setHash: randomBytes(32) }) });
    await restarts('an epoch', { config: config({ epoch: last + 3_600_000n }) });
    t.true(last > epoch + 3_600_000n);
  } finally {
    await close();
  }
});

test('a new master key leaves marks as they are; a database that had no key for them begins nothing', async (t) => {
  const [before, after] = [randomBytes(32), randomBytes(32)];
  const env = (key: Buffer) => ({ env: { SVC_MASTER_KEY: key.toString('base64') } });
  const first = await createPipeline(env(before));
  const { runtime } = first;
  const more: Pipeline[] = [];
  const again = async (key: Buffer) => {
    const next = await createPipeline({ databaseUrl: runtime.env.databaseUrl, ...env(key) });
    more.push(next);
    return next.runtime;
  };
  try {
    const clusterId = await addCluster(runtime);
    const { epoch, revision, setHash } = (await readConfigHead(runtime.pools.channel, clusterId))!;
    const place = { epoch, track: Track.STABLE, revision: revision + 1n, setHash };
    // Several processes that start together give the same marks.
    const [marks, others] = await Promise.all([positionMarks(runtime), positionMarks(await again(before))]);
    const config = { ...place, mark: marks.config(clusterId, place) };
    t.true(others.provesConfig(clusterId, config));

    t.true((await reseal(runtime.pools.api, createSealer(after, before))) > 0);
    const resealed = await again(after);
    t.true((await positionMarks(resealed)).provesConfig(clusterId, config));

    // As of a backup that is older than the key.
    await runtime.pools.api('console_state').update({ mark_key: null });
    const older = await again(after);
    const verdict = await judgeClaim(older, { clusterId, config });
    t.deepEqual(verdict, { unproven: new Set(['config']), began: false });
    t.is((await readConfigHead(runtime.pools.channel, clusterId))!.epoch, epoch);
  } finally {
    for (const pipeline of more) await pipeline.close();
    await first.close();
  }
});

test('a stream ahead of the database is not believed: it begins again where the database is, in the same epoch', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const clusterId = await addCluster(runtime);
    await publishThings(runtime, clusterId, [{ id: 'a', body: 'a' }]);
    const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
    const stream = fanoutStream(runtime.env.redisPrefix, clusterId, 'config', head.epoch);
    const writer = new FanoutWriter(runtime);
    await writer.append(stream, { from: head.revision, to: head.revision + 100n, bytes: Buffer.from('sealed') });
    const actor = new FeedActor(runtime, configFeed);
    try {
      await actor.start();
      await eventually(async () => (await writer.last(stream)) === head.revision);
      await publishThings(runtime, clusterId, [{ id: 'a', body: 'b' }]);
      await actor.compare();
      t.is(await writer.last(stream), head.revision + 1n);
      t.is((await readConfigHead(runtime.pools.channel, clusterId))!.epoch, head.epoch);
    } finally {
      await actor.stop();
    }
  } finally {
    await close();
  }
});

test('a database restored to an earlier state is noticed by the nodes, and every node converges', async (t) => {
  const given = await servers();
  const admin = new pg.Client({ connectionString: given.databaseUrl });
  await admin.connect();
  const prefix = redisPrefix();
  const env = { SVC_MASTER_KEY: randomBytes(32).toString('base64') };
  const original = await createTestDatabase(given);
  const restored = `${original.name}_restored`;
  try {
    const before = await createPipeline({ servers: given, databaseUrl: original.url, prefix, env });
    // As every process does at its start.
    await positionMarks(before.runtime);
    const clusterId = await addCluster(before.runtime);
    await publishThings(before.runtime, clusterId, [
      { id: 'kept', body: 'old' },
      { id: 'deleted later', body: 'x' },
    ]);
    await ban(before.runtime, 'kept', '192.0.2.1/32', null);
    await ban(before.runtime, 'lifted later', '192.0.2.2/32', null);
    await before.close();
    await admin.query(`create database ${restored} template ${original.name}`);

    // Life goes on: these changes reach the nodes, and then the dump is restored.
    const lost = await createPipeline({ servers: given, databaseUrl: original.url, prefix, env });
    const relay = startRelay(lost.runtime);
    const actors = [new FeedActor(lost.runtime, configFeed), new FeedActor(lost.runtime, banFeed)];
    for (const actor of actors) await actor.start();
    const pool = lost.runtime.pools.channel;
    const earlier = (await readConfigHead(pool, clusterId))!;
    const earlierBans = await readBanTarget(pool, clusterId);
    await publishThings(lost.runtime, clusterId, [{ id: 'kept', body: 'new' }]);
    await publishThings(lost.runtime, clusterId, [{ id: 'deleted later', body: null }]);
    await lift(lost.runtime, 'lifted later', null);
    await ban(lost.runtime, 'made later', '192.0.2.3/32', null);
    const node = new ModelNode(clusterId);
    await node.heartbeat(pool);
    const head = (await readConfigHead(pool, clusterId))!;
    const stream = fanoutStream(prefix, clusterId, 'config', head.epoch);
    const writer = new FanoutWriter(lost.runtime);
    await eventually(async () => (await writer.last(stream)) === head.revision);
    const pushed = await pushedFrom(lost.runtime, clusterId, earlier.revision, earlierBans.sequence);
    for (const actor of actors) await actor.stop();
    await relay.stop();
    await lost.close();

    const url = new URL(original.url);
    url.pathname = `/${restored}`;
    const after = await createPipeline({ servers: given, databaseUrl: url.href, prefix, env });
    const { runtime } = after;
    const actor = new FeedActor(runtime, configFeed);
    try {
      await actor.start();
      const again = new FanoutWriter(runtime);
      await eventually(async () => (await again.last(stream)) === earlier.revision);
      t.is((await readHistory(runtime.pools.api)).epoch, head.epoch.toString(), 'Redis proves nothing');
      t.like(await judgeClaim(runtime, { clusterId, config: pushed.config }), { unproven: NOTHING, began: true });
      t.not((await readHistory(runtime.pools.api)).epoch, head.epoch.toString());
      t.deepEqual(await judgeClaim(runtime, { clusterId, ...pushed }), { unproven: NOTHING, began: false });
      await node.heartbeat(runtime.pools.channel);
      t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
      t.deepEqual([...node.bans.keys()].toSorted(), await expectedBans(runtime, clusterId));
      t.deepEqual([...node.bans.keys()].toSorted(), ['kept', 'lifted later']);
    } finally {
      await actor.stop();
      await after.close();
    }
  } finally {
    await admin.query(`drop database if exists ${restored} with (force)`);
    await admin.end();
    await original.drop();
  }
});

/** The positions that pushed batches lead nodes to, as nodes say them. */
async function pushedFrom(runtime: Runtime, clusterId: string, revision: bigint, sequence: bigint) {
  const next = async (feed: Feed, from: bigint) => {
    const source = feed.source(runtime);
    const target = (await source.targets([clusterId])).get(clusterId)!;
    return (await source.read(clusterId, from, target))!.bytes;
  };
  const config = fromBinary(ConfigDeltaSchema, await next(configFeed, revision));
  const batch = fromBinary(BanBatchSchema, await next(banFeed, sequence));
  return { config, bans: { epoch: batch.epoch, sequence: batch.to, mark: batch.mark } };
}

test('declaring a restore begins a new epoch; the command refuses what it does not know', async (t) => {
  const { runtime, close } = await createPipeline();
  const recover = (args: string[], env: Record<string, string>) =>
    promisify(execFile)(process.execPath, [join(root, 'bin', 'recover.ts'), ...args], {
      env: { PATH: process.env.PATH, ...env },
      timeout: 60_000,
    });
  try {
    const { epoch } = await readHistory(runtime.pools.api);
    const url = { DATABASE_URL: runtime.env.databaseUrl };
    await t.throwsAsync(recover(['restore'], url), { message: /Usage/ });
    await t.throwsAsync(recover(['restored'], {}), { message: /DATABASE_URL is missing/ });
    t.is((await readHistory(runtime.pools.api)).epoch, epoch);
    const { stderr } = await recover(['restored'], url);
    const now = (await readHistory(runtime.pools.api)).epoch;
    t.true(BigInt(now) > BigInt(epoch));
    t.true(stderr.includes(now));
  } finally {
    await close();
  }
});
