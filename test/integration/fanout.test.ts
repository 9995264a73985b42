// From a committed change to a node, through relay, owners and streams, while messages get lost, double, late or out of
// order, owners come, go and double, and Redis forgets.
import test from 'ava';
import fc from 'fast-check';
import { readBanTarget } from '../../models/bans/ban-feed.ts';
import { readConfigHead } from '../../models/config/config-history.ts';
import { FeedActor } from '../../pipeline/feed-actor.ts';
import { type Relay, startRelay } from '../../pipeline/relay.ts';
import { FanoutReader, FanoutWriter, type ReadBatch } from '../../runtime/fanout-stream.ts';
import type { Runtime } from '../../runtime/runtime.ts';
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

let pipeline: Pipeline;
let runtime: Runtime;
let workers: Worker[] = [];
let relay: Relay;
let serial = 0;

type Feed = 'config' | 'bans';

interface Worker {
  stop(): Promise<void>;
}

async function startWorker(on: Runtime): Promise<Worker> {
  const actors = [new FeedActor(on, configFeed), new FeedActor(on, banFeed)];
  for (const actor of actors) await actor.start();
  return {
    stop: async () => {
      for (const actor of actors) await actor.stop();
    },
  };
}

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
  relay = startRelay(runtime);
  workers = [await startWorker(runtime)];
});
test.after.always(async () => {
  await relay?.stop();
  for (const worker of workers) await worker.stop();
  await pipeline?.close();
});

async function streamOf(clusterId: string, feed: Feed): Promise<string> {
  const { epoch } = (await readConfigHead(runtime.pools.channel, clusterId))!;
  return fanoutStream(runtime.env.redisPrefix, clusterId, feed, epoch);
}

/** Where a feed's stream ends; 0 when it is missing. */
async function endOf(clusterId: string, feed: Feed): Promise<bigint> {
  const [last] = await runtime.redis.xrevrange(await streamOf(clusterId, feed), '+', '-', 'COUNT', 1);
  return last ? BigInt(last[0].split('-')[0]!) : 0n;
}

/** Waits until both streams of the cluster are where the database is. */
async function settled(clusterId: string): Promise<void> {
  await eventually(
    async () => {
      const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
      const target = await readBanTarget(runtime.pools.channel, clusterId);
      return (
        (await endOf(clusterId, 'config')) === head.revision && (await endOf(clusterId, 'bans')) === target.sequence
      );
    },
    { what: 'the streams to reach the database' },
  );
}

/** Deletes every key of this file: what FLUSHALL does to one console. */
async function forgetEverything(): Promise<void> {
  const keys = await runtime.redis.keys(`${runtime.env.redisPrefix}*`);
  if (keys.length > 0) await runtime.redis.del(...keys);
}

/** Collects the batches of a cluster's streams; a test decides what becomes of them. */
class Mailbox {
  readonly config: ReadBatch[] = [];
  readonly bans: ReadBatch[] = [];
  readonly #reader: FanoutReader;

  constructor() {
    this.#reader = new FanoutReader(runtime, {
      onBatches: (stream, batches) => {
        this[stream.includes(':config:') ? 'config' : 'bans'].push(...batches);
      },
    });
    this.#reader.start();
  }

  async follow(clusterId: string): Promise<void> {
    for (const feed of ['config', 'bans'] as const) {
      this.#reader.follow(await streamOf(clusterId, feed), 0n);
    }
  }

  stop(): Promise<void> {
    return this.#reader.stop();
  }
}

function deliver(node: ModelNode, feed: Feed, { bytes }: ReadBatch): string {
  if (!bytes) return 'pull';
  return feed === 'config' ? node.receiveConfig(bytes) : node.receiveBans(bytes);
}

const feed = fc.constantFrom<Feed>('config', 'bans');
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant('publish' as const),
      id: fc.constantFrom('a', 'b', 'c'),
      body: fc.option(fc.string({ maxLength: 4 }), { nil: null }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constantFrom('ban' as const, 'lift' as const),
      slot: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constantFrom('next' as const, 'lose' as const, 'double' as const, 'last' as const),
      feed,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constantFrom('settle' as const, 'forget' as const, 'heartbeat' as const) }),
  },
);

test.serial(
  'whatever happens to messages, a node is always at a place of the history and ends at the target',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (history) => {
        const clusterId = await addCluster(runtime);
        const pool = runtime.pools.channel;
        const node = new ModelNode(clusterId);
        const mailbox = new Mailbox();
        await mailbox.follow(clusterId);
        const slots = Array.from({ length: 4 }, () => {
          serial++;
          return { id: `f${serial}`, cidr: `198.51.${serial % 200}.${serial % 250}/32` };
        });
        try {
          await node.heartbeat(pool);
          for (const command of history) {
            if (command.act === 'publish') {
              await publishThings(runtime, clusterId, [{ id: command.id, body: command.body }]);
            } else if (command.act === 'ban' || command.act === 'lift') {
              const { id, cidr } = slots[command.slot]!;
              const where = command.slot % 2 ? clusterId : null;
              await (command.act === 'ban' ? ban(runtime, id, cidr, where) : lift(runtime, id, where));
            } else if (command.act === 'settle') await settled(clusterId);
            else if (command.act === 'forget') await forgetEverything();
            else if (command.act === 'heartbeat') await node.heartbeat(pool);
            else if ('feed' in command) {
              const box = mailbox[command.feed];
              // The first that waits, or the newest before its turn; doubled: it stays and comes again.
              const batch = command.act === 'last' ? box.at(-1) : box[0];
              if (command.act === 'next' || command.act === 'lose') box.shift();
              if (batch && command.act !== 'lose') deliver(node, command.feed, batch);
            }
            const row = await pool.query('select set_hash from config_revision where cluster_id = $1 and number = $2', [
              clusterId,
              node.config.revision.toString(),
            ]);
            t.deepEqual(node.setHash(), row.rows[0].set_hash, 'the node holds exactly what its revision says');
          }
          await node.heartbeat(pool);
          t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
          const mine = new Set(slots.map(({ id }) => id));
          t.deepEqual(
            [...node.bans.keys()].filter((id) => mine.has(id)).toSorted(),
            (await expectedBans(runtime, clusterId)).filter((id) => mine.has(id)).toSorted(),
          );
          await settled(clusterId);
        } finally {
          await mailbox.stop();
        }
      }),
      { numRuns: 15 },
    );
  },
);

test.serial('a node that only listens follows every change without asking', async (t) => {
  const clusterId = await addCluster(runtime);
  const node = new ModelNode(clusterId);
  await node.heartbeat(runtime.pools.channel);
  await settled(clusterId);
  const mailbox = new Mailbox();
  await mailbox.follow(clusterId);
  try {
    for (let index = 0; index < 30; index++) {
      await publishThings(runtime, clusterId, [{ id: `t${index % 7}`, body: `${index}` }]);
      serial++;
      await ban(runtime, `l${serial}`, `203.0.113.${index}/32`, index % 2 ? clusterId : null);
    }
    await settled(clusterId);
    await eventually(() => mailbox.config.at(-1)?.to === undefined || mailbox.bans.length > 0, { what: 'batches' });
    await eventually(async () => mailbox.config.at(-1)?.to === (await endOf(clusterId, 'config')));
    await eventually(async () => mailbox.bans.at(-1)?.to === (await endOf(clusterId, 'bans')));
    for (const batch of mailbox.config) t.not(deliver(node, 'config', batch), 'pull');
    for (const batch of mailbox.bans) t.not(deliver(node, 'bans', batch), 'pull');
    t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
    const held = new Set(node.bans.keys());
    t.true((await expectedBans(runtime, clusterId)).every((id) => held.has(id)));
  } finally {
    await mailbox.stop();
  }
});

test.serial('two owners of everything and two relays: the same batches, each place once', async (t) => {
  const other = await pipeline.another();
  const secondRelay = startRelay(other.runtime);
  // Both work on every cluster, as when a dead link lets two believe they are the owner.
  const doubles = [new FeedActor(runtime, configFeed), new FeedActor(other.runtime, configFeed)];
  const clusterId = await addCluster(runtime);
  const node = new ModelNode(clusterId);
  await node.heartbeat(runtime.pools.channel);
  await settled(clusterId);
  const mailbox = new Mailbox();
  await mailbox.follow(clusterId);
  try {
    for (let round = 0; round < 20; round++) {
      await publishThings(runtime, clusterId, [{ id: `t${round % 3}`, body: `${round}` }]);
      await Promise.all(doubles.map((actor) => actor.emit(clusterId)));
    }
    await settled(clusterId);
    await eventually(async () => mailbox.config.at(-1)?.to === (await endOf(clusterId, 'config')));
    const places = mailbox.config.map(({ to }) => to);
    t.deepEqual(
      places,
      [...new Set(places)].toSorted((a, b) => Number(a - b)),
    );
    for (const batch of mailbox.config) t.not(deliver(node, 'config', batch), 'pull');
    t.deepEqual(heldThings(node.entries), await expectedThings(runtime, clusterId));
    t.is((await runtime.pools.api('outbox').where({ key: clusterId })).length, 0);
  } finally {
    await mailbox.stop();
    await secondRelay.stop();
    await other.close();
  }
});

test.serial('after Redis forgot everything the streams say where the feeds are', async (t) => {
  const clusterId = await addCluster(runtime);
  await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]);
  await settled(clusterId);
  await forgetEverything();
  await settled(clusterId);
  const [entry] = await runtime.redis.xrange(await streamOf(clusterId, 'config'), '-', '+');
  t.is(entry![0], `${(await readConfigHead(runtime.pools.channel, clusterId))!.revision}-0`);
  const node = new ModelNode(clusterId);
  node.config = (await readConfigHead(runtime.pools.channel, clusterId))!;
  node.config.revision -= 1n;
  const mailbox = new Mailbox();
  await mailbox.follow(clusterId);
  try {
    const mark = await eventually(() => mailbox.config[0]);
    t.is(deliver(node, 'config', mark), 'pull');
    // Changes after it are carried again.
    await publishThings(runtime, clusterId, [{ id: 'a', body: 'y' }]);
    const next = await eventually(() => mailbox.config[1]);
    t.is(next.from, mark.to);
    t.truthy(next.bytes);
  } finally {
    await mailbox.stop();
  }
});

test.serial(
  'a batch above 16 KiB lies beside its stream, and a reader gets it whole or learns that it is gone',
  async (t) => {
    const clusterId = await addCluster(runtime);
    const node = new ModelNode(clusterId);
    await node.heartbeat(runtime.pools.channel);
    await settled(clusterId);
    const mailbox = new Mailbox();
    await mailbox.follow(clusterId);
    try {
      await publishThings(runtime, clusterId, [{ id: 'big', body: Buffer.alloc(40_000, 0xfe) }]);
      const batch = await eventually(() => mailbox.config.find(({ to }) => to > node.config.revision));
      t.is(deliver(node, 'config', batch), 'applied');
      const [entry] = await runtime.redis.xrevrange(await streamOf(clusterId, 'config'), '+', '-', 'COUNT', 1);
      const pointer = entry![1][entry![1].indexOf('p') + 1]!;
      await runtime.redis.del(pointer);
      const late = new Mailbox();
      await late.follow(clusterId);
      const lost = await eventually(() => late.config.find(({ to }) => to === batch.to));
      t.is(lost.bytes, null);
      await late.stop();
    } finally {
      await mailbox.stop();
    }
  },
);

const refused = async () =>
  Number(/svc_refused_messages_total\{of="fanout"\} (\d+)/.exec(await runtime.metrics.metrics())?.[1] ?? 0);

test.serial('what somebody else writes into a stream reaches no reader, and the stream begins again', async (t) => {
  const clusterId = await addCluster(runtime);
  await publishThings(runtime, clusterId, [{ id: 'a', body: 'true' }]);
  await settled(clusterId);
  const mailbox = new Mailbox();
  await mailbox.follow(clusterId);
  try {
    const known = await eventually(() => mailbox.config[0]);
    const stream = await streamOf(clusterId, 'config');
    const [genuine] = await runtime.redis.xrangeBuffer(stream, '-', '+');
    const ahead = known.to + 1000n;
    for (const fields of [
      ['f', String(known.to), 't', String(Date.now()), 'b', Buffer.from(known.bytes!)],
      // The seal of another place.
      ['f', String(known.to), ...genuine![1].slice(2)],
      ['f', 'x'.repeat(100), 's', 'y', 'd', 'z'],
    ]) {
      const before = await refused();
      await runtime.redis.xadd(stream, `${ahead}-0`, ...fields);
      await eventually(async () => (await refused()) > before, { what: 'the forged entry to be refused' });
      await settled(clusterId);
    }
    await publishThings(runtime, clusterId, [{ id: 'a', body: 'still true' }]);
    await eventually(() => mailbox.config.find(({ to }) => to > known.to), { what: 'the next change' });
    t.deepEqual(
      mailbox.config.filter(({ to }) => to >= ahead),
      [],
    );
  } finally {
    await mailbox.stop();
  }
});

test.serial('a stream whose last entry was taken away takes the next change all the same', async (t) => {
  const clusterId = await addCluster(runtime);
  await publishThings(runtime, clusterId, [{ id: 'a', body: 'x' }]);
  await settled(clusterId);
  const stream = await streamOf(clusterId, 'config');
  const id = `${(await endOf(clusterId, 'config')) + 1000n}-0`;
  // In one transaction: nobody sees the entry, and the stream refuses every place before it from now on.
  await runtime.redis.multi().xadd(stream, id, 'f', '1').xdel(stream, id).exec();
  await publishThings(runtime, clusterId, [{ id: 'a', body: 'y' }]);
  await settled(clusterId);
  t.pass();
});

test.serial('a stream keeps ten minutes and four mebibytes, and refuses a place it has passed', async (t) => {
  const writer = new FanoutWriter(runtime);
  const stream = `${runtime.env.redisPrefix}svc:fan2:trimmed:config:1`;
  const now = Date.now();
  const places = async () => (await runtime.redis.xrange(stream, '-', '+')).map(([id]) => Number(id.split('-')[0]));
  const append = (to: number, bytes: Uint8Array, at: number) =>
    writer.append(stream, { from: BigInt(to - 1), to: BigInt(to), bytes }, at);
  const small = Buffer.from('small');
  for (const [to, minutesAgo] of [
    [1, 30],
    [2, 20],
    [3, 5],
  ] as const)
    await append(to, small, now - minutesAgo * 60_000);
  t.true(await append(4, small, now));
  t.deepEqual(await places(), [3, 4]);
  t.false(await append(4, Buffer.from('another owner'), now));
  t.false(await append(2, small, now));
  t.deepEqual(await places(), [3, 4]);
  const large = Buffer.alloc(16_000, 1);
  for (let to = 5; to < 305; to++) await append(to, large, now);
  const kept = await places();
  t.is(kept.at(-1), 304);
  t.true(kept.length <= 263, `${kept.length} entries of 16,000 bytes`);
  t.true(kept.length >= 250, `${kept.length} entries of 16,000 bytes`);
});

test.serial('what a writer remembers of its streams ends with what they keep', async (t) => {
  const writer = new FanoutWriter(runtime);
  const stream = (name: string) => `${runtime.env.redisPrefix}svc:fan2:${name}:config:1`;
  const now = Date.now();
  const append = (name: string, to: bigint, minutesAgo: number) =>
    writer.append(stream(name), { from: to - 1n, to, bytes: Buffer.from('x') }, now - minutesAgo * 60_000);
  await append('over', 1n, 30);
  for (let to = 1n; to <= 20n; to++) await append('going-on', to, 25);
  await append('going-on', 21n, 5);
  await append('going-on', 22n, 0);
  t.is(writer.remembered, 2);
});

test.serial('workers that come and go leave no change behind', async (t) => {
  const clusters = [];
  for (let index = 0; index < 4; index++) clusters.push(await addCluster(runtime));
  const other = await pipeline.another();
  try {
    const second = await startWorker(other.runtime);
    for (const [index, clusterId] of clusters.entries()) {
      await publishThings(runtime, clusterId, [{ id: 'a', body: `${index}` }]);
    }
    await workers.shift()!.stop();
    for (const clusterId of clusters) {
      serial++;
      await publishThings(runtime, clusterId, [{ id: 'b', body: 'after the first went' }]);
      await ban(runtime, `w${serial}`, `192.0.2.${serial % 250}/32`, clusterId);
    }
    for (const clusterId of clusters) await settled(clusterId);
    workers = [await startWorker(runtime)];
    await second.stop();
    for (const clusterId of clusters) {
      await publishThings(runtime, clusterId, [{ id: 'c', body: 'after the second went' }]);
      await settled(clusterId);
    }
    t.pass();
  } finally {
    await other.close();
  }
});
