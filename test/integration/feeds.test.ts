// Feeds are a mechanism: a made-up one, registered by nothing but its description, travels from the outbox to a reader; a
// topic that nobody knows is seen and its rows are kept.
import { Writable } from 'node:stream';
import test from 'ava';
import { FeedActor } from '../../pipeline/feed-actor.ts';
import { startRelay } from '../../pipeline/relay.ts';
import { UnknownTopics } from '../../pipeline/unknown-topics.ts';
import { FanoutReader, type ReadBatch } from '../../runtime/fanout-stream.ts';
import { namedWire } from '../../runtime/feed-wire.ts';
import { type Feed, Feeds } from '../../runtime/feeds.ts';
import { deadLetterStream, fanoutStream } from '../../runtime/stream-names.ts';
import { discoverFeeds } from '../../services/discover.ts';
import { WatchHub } from '../../services/node-channel/watch/watch-hub.ts';
import { eventually } from '../helpers/eventually.ts';
import { addCluster, createPipeline, type Pipeline } from '../helpers/pipeline.ts';

const EVENT = 100;

/** Steps of a table of the test, each with a text. */
const madeUp: Feed = {
  name: 'made-up',
  topic: 'test-steps',
  ownerLock: 0x535601ff,
  lane: 'regular',
  wire: { ...namedWire('made-up', 'feeds-v1'), event: EVENT, needs: null },
  columns: null,
  hint: null,
  changes: null,
  source: ({ pools: { channel } }) => ({
    targets: async (clusterIds) => {
      const { rows } = await channel.query<{ id: string; epoch: string; step: string }>(
        `select c.id, s.epoch, coalesce((select max(step) from test_step where cluster_id = c.id), 0) as step
           from cluster c cross join console_state s where $1::text[] is null or c.id = any($1::text[])`,
        [clusterIds ?? null],
      );
      return new Map(rows.map(({ id, epoch, step }) => [id, { epoch: BigInt(epoch), position: BigInt(step) }]));
    },
    read: async (clusterId, from, { position }) => {
      const { rows } = await channel.query<{ word: string }>(
        'select word from test_step where cluster_id = $1 and step > $2 and step <= $3 order by step',
        [clusterId, String(from), String(position)],
      );
      return { from, to: position, bytes: Buffer.from(rows.map(({ word }) => word).join(' ')) };
    },
    mark: () => new Uint8Array(),
  }),
  repair: null,
};

async function say(on: Pipeline, clusterId: string, step: number, word: string): Promise<void> {
  await on.runtime.pools.api.transaction(async (sql) => {
    await sql('test_step').insert({ cluster_id: clusterId, step, word });
    await sql('outbox').insert({ topic: madeUp.topic, key: clusterId });
  });
}

test('a made-up feed travels from the outbox to streams of nodes, through relay, owner and Redis', async (t) => {
  const pipeline = await createPipeline({ feeds: [madeUp] });
  const { runtime } = pipeline;
  await runtime.pools.api.raw('create table test_step (cluster_id text, step bigint, word text)');
  const clusterId = await addCluster(runtime);
  await say(pipeline, clusterId, 1, 'zero');
  const relay = startRelay(runtime);
  const actor = new FeedActor(runtime, madeUp);
  const hub = new WatchHub(runtime);
  const read: ReadBatch[] = [];
  const reader = new FanoutReader(runtime, { onBatches: (_, batches) => read.push(...batches) });
  try {
    await actor.start();
    hub.start();
    reader.start();
    const { epoch } = (await hub.feed(clusterId))!.tracks.get('made-up')!;
    const stream = fanoutStream(runtime.env.redisPrefix, clusterId, 'made-up', epoch);
    reader.follow(stream, 0n);
    await eventually(() => read.length === 1);
    const written: Buffer[] = [];
    const sink = new Writable({
      write(chunk: Buffer, _, done) {
        written.push(chunk);
        done();
      },
    });
    const node = {
      nodeId: 'n',
      clusterId,
      serial: 's',
      certificateNotAfter: new Date(),
      name: 'n',
      principals: ['node' as const],
      status: 'active' as const,
      features: new Set<string>(),
    };
    await hub.open(node, sink, {});
    await say(pipeline, clusterId, 2, 'one');
    await eventually(() => read.length === 2, { what: 'the batch' });
    t.like(read[1], { from: 1n, to: 2n });
    t.is(Buffer.from(read[1]!.bytes!).toString(), 'one');
    // Field 100 of a WatchEvent, three bytes.
    const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, 6, 0xa2, 0x06, 3]), Buffer.from('one')]);
    await eventually(() => written.some((chunk) => chunk.equals(frame)), { what: 'the frame of the batch' });
    // Counted once Redis has said so, which may be after the reader has it.
    const counted = 'svc_fanout_batches_total{feed="made-up"} 1';
    await eventually(async () => (await runtime.metrics.metrics()).includes(counted), { what: counted });
    t.pass();
  } finally {
    await reader.stop();
    await hub.stop();
    await actor.stop();
    await relay.stop();
    await pipeline.close();
  }
});

test('rows of a topic that nobody knows are seen and kept for a newer relay, and set aside when none comes', async (t) => {
  const pipeline = await createPipeline();
  const newer = await pipeline.another();
  const { runtime } = pipeline;
  try {
    const sql = runtime.pools.api;
    await sql('outbox').delete();
    const relay = startRelay(runtime);
    await sql('outbox').insert([
      { topic: madeUp.topic, key: 'kept' },
      { topic: 'config', key: 'moved' },
    ]);
    await eventually(async () => (await sql('outbox')).length === 1, { what: 'the known row to be moved' });
    const unknown = new UnknownTopics(runtime);
    await unknown.look();
    t.regex(await runtime.metrics.metrics(), /svc_outbox_unknown_rows\{topic="test-steps"\} 1/);
    t.like(await sql('outbox').first(), { topic: 'test-steps', key: 'kept' });
    // A relay of the version that has the feed.
    newer.runtime.feeds = new Feeds([...(await discoverFeeds()), madeUp]);
    const second = startRelay(newer.runtime);
    await eventually(async () => (await sql('outbox')).length === 0, { what: 'the newer relay' });
    await second.stop();
    await unknown.look();
    t.notRegex(await runtime.metrics.metrics(), /svc_outbox_unknown_rows\{/);
    await sql('outbox').insert({ topic: 'forgotten', key: 'x', created_at: new Date(Date.now() - 60_000) });
    await unknown.look(30);
    t.is((await sql('outbox')).length, 0);
    const [letter] = await runtime.redis.xrange(deadLetterStream(runtime.env.redisPrefix), '-', '+');
    t.deepEqual(letter?.[1], ['s', 'outbox', 'topic', 'forgotten', 'k', 'x']);
    await relay.stop();
  } finally {
    await newer.close();
    await pipeline.close();
  }
});

test('two feeds share no name, topic or lock; those of which a node gets one share an event', async (t) => {
  const [feed] = (await discoverFeeds()) as [Feed];
  const other = { ...madeUp, wire: { ...madeUp.wire, event: 101 } };
  t.notThrows(() => new Feeds([feed, madeUp]));
  t.notThrows(() => new Feeds([feed, { ...madeUp, wire: feed.wire }]));
  for (const shared of [{ name: feed.name }, { topic: feed.topic }, { ownerLock: feed.ownerLock }]) {
    t.throws(() => new Feeds([feed, { ...other, ...shared }]), { message: /have the same/ });
  }
  t.throws(() => new Feeds([{ ...other, name: 'Not a name' }]), { message: /not a name/ });
});
