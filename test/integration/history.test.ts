// A database that forgot what it had committed: restored, failed over with loss, or behind a node.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import pg from 'pg';
import { root } from '../../bin/lib/root.ts';
import { readBanTarget } from '../../models/ban-feed.ts';
import { readConfigHead } from '../../models/config-history.ts';
import { readHistory } from '../../models/epoch.ts';
import { FeedActor } from '../../runtime/feed-actor.ts';
import { checkHistory, noteNodeAhead, startNewEpoch } from '../../runtime/history.ts';
import { startRelay } from '../../runtime/relay.ts';
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

test('a node ahead of the database begins a new epoch; one that is not, or claims too often, does not', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const clusterId = await addCluster(runtime);
    const pool = runtime.pools.channel;
    const sql = runtime.pools.api;
    // The history of this database is younger than a minute: age it.
    await sql('console_state').update({ epoch: Date.now() - 120_000 });
    await sql('cluster_head').update({ epoch: sql('console_state').select('epoch') });
    const head = (await readConfigHead(pool, clusterId))!;
    const config = { epoch: head.epoch, revision: head.revision };
    t.false(await noteNodeAhead(runtime, { clusterId, config }));
    t.false(await noteNodeAhead(runtime, { clusterId, config: { epoch: head.epoch - 1n, revision: 999n } }));
    t.false(await noteNodeAhead(runtime, { clusterId, bans: { epoch: head.epoch, sequence: 0n } }));
    t.true(await noteNodeAhead(runtime, { clusterId, config: { ...config, revision: head.revision + 1n } }));
    const next = (await readConfigHead(pool, clusterId))!;
    t.true(next.epoch > head.epoch);
    t.false(await noteNodeAhead(runtime, { clusterId, config: { epoch: next.epoch, revision: 999n } }));
  } finally {
    await close();
  }
});

test('a database restored to an earlier state is noticed by the streams, and every node converges', async (t) => {
  const given = await servers();
  const admin = new pg.Client({ connectionString: given.databaseUrl });
  await admin.connect();
  const prefix = redisPrefix();
  const env = { SVC_MASTER_KEY: randomBytes(32).toString('base64') };
  const original = await createTestDatabase(given);
  const restored = `${original.name}_restored`;
  try {
    const before = await createPipeline({ servers: given, databaseUrl: original.url, prefix, env });
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
    await publishThings(lost.runtime, clusterId, [{ id: 'kept', body: 'new' }]);
    await publishThings(lost.runtime, clusterId, [{ id: 'deleted later', body: null }]);
    await lift(lost.runtime, 'lifted later', null);
    await ban(lost.runtime, 'made later', '192.0.2.3/32', null);
    const node = new ModelNode(clusterId);
    await node.heartbeat(lost.runtime.pools.channel);
    const head = (await readConfigHead(lost.runtime.pools.channel, clusterId))!;
    const stream = fanoutStream(prefix, clusterId, 'config', head.epoch);
    await eventually(async () => {
      const [last] = await lost.runtime.redis.xrevrange(stream, '+', '-', 'COUNT', 1);
      return last?.[0] === `${head.revision}-0`;
    });
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
      await eventually(async () => (await readHistory(runtime.pools.api)).epoch !== head.epoch.toString());
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
