import { Writable } from 'node:stream';
import { create, fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { type FeedRows, namedFeed } from '../../../../../pipeline/named-feed.ts';
import { BanPositionSchema } from '../../../../../proto/gen/svc/node/v1/bans_pb.js';
import { ConfigPositionSchema } from '../../../../../proto/gen/svc/node/v1/config_pb.js';
import { FeedPositionSchema } from '../../../../../proto/gen/svc/node/v1/feeds_pb.js';
import { WatchEventSchema } from '../../../../../proto/gen/svc/node/v1/node_pb.js';
import { Feeds } from '../../../../../runtime/feeds.ts';
import { discoverFeeds } from '../../../../../services/discover.ts';
import type { NodeIdentity } from '../../../../../services/node-channel/identity.ts';
import { ClusterFeed, type ClusterHeads } from '../../../../../services/node-channel/watch/cluster-feed.ts';
import { batchFrame } from '../../../../../services/node-channel/watch/frames.ts';
import { WatchStream } from '../../../../../services/node-channel/watch/watch-stream.ts';
import { eventually } from '../../../../helpers/eventually.ts';

const EPOCH = 100n;
/** As a folder would register it. */
const madeUp = namedFeed({
  name: 'made-up',
  topic: 'made-up',
  ownerLock: 0x535601ff,
  hint: null,
  changes: null,
  rows: () => ({}) as FeedRows,
});
const FEEDS = new Feeds([...(await discoverFeeds()), madeUp]);
const heads = (revision = 0, sequence = 0, more: Partial<ClusterHeads> = {}): ClusterHeads => ({
  config: { epoch: EPOCH, revision: BigInt(revision), setHash: new Uint8Array(32) },
  others: new Map([
    ['bans', { epoch: EPOCH, position: BigInt(sequence) }],
    ['acme', { epoch: EPOCH, position: 0n }],
  ]),
  features: new Set(),
  canary: null,
  keysVersion: 1n,
  ticketKeysVersion: 1n,
  ...more,
});
const node = (features: string[] = []): NodeIdentity => ({
  nodeId: 'n',
  clusterId: 'c',
  serial: 's',
  certificateNotAfter: new Date(),
  name: 'n',
  principals: ['node'],
  status: 'active',
  features: new Set(features),
});

/** A connection that takes bytes only while it is open. */
class Reader extends Writable {
  readonly events: string[] = [];
  readonly targets: unknown[] = [];
  held = 0;
  #open = true;
  #waiting: (() => void)[] = [];

  constructor() {
    super({ highWaterMark: 1000 });
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const take = () => {
      if (chunk[0] === 2) this.events.push(`end ${chunk.subarray(5).toString()}`);
      else {
        const { event } = fromBinary(WatchEventSchema, chunk.subarray(5));
        if (event.case === 'target') this.targets.push([event.value.config?.revision, event.value.bans?.sequence]);
        const bytes =
          event.case === 'banBatch' || event.case === 'configDelta' || event.case === 'feedBatch' ? event.value[0] : '';
        this.events.push(`${event.case}${bytes}`);
      }
      done();
    };
    if (this.#open) take();
    else this.#waiting.push(take);
  }
  close(): void {
    this.#open = false;
  }
  open(): void {
    this.#open = true;
    for (const take of this.#waiting.splice(0)) take();
  }
}

function start(feed: ClusterFeed, reader: Reader, config?: bigint, bans?: bigint, identity = node()): WatchStream {
  const stream = new WatchStream(identity, reader, feed, {
    config: config === undefined ? undefined : create(ConfigPositionSchema, { epoch: EPOCH, revision: config }),
    bans: bans === undefined ? undefined : create(BanPositionSchema, { epoch: EPOCH, sequence: bans }),
    acme: undefined,
  });
  feed.streams.add(stream);
  stream.pump();
  return stream;
}
const ban = (to: number, bytes = 10) => ({
  from: BigInt(to - 1),
  to: BigInt(to),
  frame: batchFrame(WatchEventSchema.field.banBatch.number, Buffer.alloc(bytes, to)),
  at: Date.now(),
});
const delta = (to: number) => ({
  from: BigInt(to - 1),
  to: BigInt(to),
  frame: batchFrame(WatchEventSchema.field.configDelta.number, Buffer.alloc(10, to)),
  at: Date.now(),
});

test('the first event is the target, then what the node lacks of what the rings hold', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  for (const to of [1, 2, 3]) feed.append('bans', ban(to));
  feed.appendConfig(delta(1), new Uint8Array(32), []);
  const reader = new Reader();
  start(feed, reader, 0n, 1n);
  t.deepEqual(reader.events, ['target', 'banBatch2', 'banBatch3', 'configDelta1']);
  // The target names what the stream continues from: nothing for the node to ask for.
  t.deepEqual(reader.targets, [[0n, 1n]]);
});

test('a node whose place the ring does not hold gets the target only, and pushes from there on', (t) => {
  const feed = new ClusterFeed('c', heads(7, 7), FEEDS);
  const reader = new Reader();
  start(feed, reader, 3n, undefined);
  feed.append('bans', ban(8));
  feed.wake();
  t.deepEqual(reader.events, ['target', 'banBatch8']);
  t.deepEqual(reader.targets, [[7n, 7n]]);
});

test('a new version of the challenge keys is told once, also to a node that lacks a capability', (t) => {
  const feed = new ClusterFeed('c', heads(1, 1, { features: new Set(['new-v1']) }), FEEDS);
  const reader = new Reader();
  start(feed, reader, 1n, 1n);
  t.deepEqual(reader.events, ['target']);
  feed.setKeysVersion(2n);
  feed.wake();
  feed.wake();
  t.deepEqual(reader.events, ['target', 'keysChanged']);
  const features = new Set(['new-v1']);
  feed.compare(heads(0, 1, { features, keysVersion: 1n }), false);
  t.is(feed.keysVersion, 2n, 'a look older than what was pushed');
  feed.compare(heads(1, 1, { features, keysVersion: 3n }), false);
  t.deepEqual(reader.events, ['target', 'keysChanged', 'keysChanged']);
});

test('every stream is given the same bytes', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const written: Buffer[][] = [[], []];
  for (const list of written) {
    const reader = new Reader();
    const write = reader.write.bind(reader);
    reader.write = ((chunk: Buffer) => {
      list.push(chunk);
      return write(chunk);
    }) as typeof reader.write;
    start(feed, reader, 0n, 0n);
  }
  feed.append('bans', ban(1));
  feed.wake();
  t.is(written[0]![1], written[1]![1]);
});

test('a reader that stalls holds one frame beyond its buffer, and continues where it was', async (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const reader = new Reader();
  const stream = start(feed, reader, 0n, 0n);
  reader.close();
  for (let to = 1; to <= 50; to++) {
    feed.append('bans', ban(to, 400));
    feed.wake();
  }
  t.true(reader.writableLength < 2000);
  t.not(stream.blockedSince, null);
  reader.open();
  await eventually(() => reader.events.length === 51);
  t.is(stream.blockedSince, null);
  t.deepEqual(reader.events, ['target', ...Array.from({ length: 50 }, (_, index) => `banBatch${index + 1}`)]);
});

test('a reader that stalls until the ring has moved on is told the target instead of a gap', async (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const reader = new Reader();
  start(feed, reader, 0n, 0n);
  reader.close();
  for (let to = 1; to <= 40; to++) {
    feed.append('bans', ban(to, 200_000));
    feed.wake();
  }
  reader.open();
  await eventually(() => reader.events.length > 1 && reader.events.at(-1) === 'target');
  t.is(reader.events[0], 'target');
  t.is(reader.events.at(-1), 'target');
  t.true(reader.events.length < 6);
});

test('a new epoch starts over with a target', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const reader = new Reader();
  start(feed, reader, 0n, 0n);
  t.is(
    feed.compare(heads(0, 0, { others: new Map([['bans', { epoch: EPOCH + 1n, position: 9n }]]) }), false).get('bans'),
    'restarted',
  );
  t.deepEqual(reader.events, ['target', 'target']);
  t.is(feed.tracks.get('bans')!.ring.head, 9n);
});

test('a head that PostgreSQL has and Redis does not deliver counts as missing at the second look, at once without Redis', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  t.is(feed.compare(heads(0, 5), false).get('bans'), 'same');
  t.is(feed.compare(heads(0, 5), false).get('bans'), 'behind');
  t.is(feed.compare(heads(3, 5), true).get('config'), 'behind');
  // It arrived between the looks: the next one starts waiting again.
  t.is(feed.compare(heads(0, 1), false).get('bans'), 'same');
  feed.append('bans', ban(1));
  t.is(feed.compare(heads(0, 2), false).get('bans'), 'same');
});

test('a look at PostgreSQL that is older than what Redis delivered takes nothing back', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  feed.append('bans', ban(1));
  t.is(feed.compare(heads(0, 0), true).get('bans'), 'same');
  t.is(feed.tracks.get('bans')!.ring.head, 1n);
});

test('a feed that was ahead of PostgreSQL before it was asked starts over where PostgreSQL is', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const reader = new Reader();
  start(feed, reader, 0n, 0n);
  feed.append('bans', ban(1));
  feed.wake();
  const places = feed.places();
  // What arrives while it is asked is no sign.
  feed.append('bans', ban(2));
  t.is(feed.compare(heads(0, 1), false, places).get('bans'), 'same');
  t.is(feed.tracks.get('bans')!.ring.head, 2n);
  const comparison = feed.compare(heads(0, 1), false, feed.places());
  t.deepEqual([comparison.get('bans'), comparison.get('config')], ['restarted', 'same']);
  t.is(feed.tracks.get('bans')!.ring.head, 1n);
  t.deepEqual(reader.targets.at(-1), [0n, 1n]);
});

test('a node that lacks a capability gets bans and targets, and no configuration', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const old = new Reader();
  const able = new Reader();
  start(feed, old, 0n, 0n);
  start(feed, able, 0n, 0n, node(['new-v1']));
  feed.appendConfig(delta(1), new Uint8Array(32), ['new-v1']);
  feed.append('bans', ban(1));
  feed.wake();
  t.deepEqual(old.events, ['target', 'banBatch1']);
  t.deepEqual(able.events, ['target', 'banBatch1', 'configDelta1']);
});

test('an ended stream writes nothing more', (t) => {
  const feed = new ClusterFeed('c', heads(), FEEDS);
  const reader = new Reader();
  const stream = start(feed, reader, 0n, 0n);
  stream.end({ code: 'unavailable', message: 'stopping' });
  feed.append('bans', ban(1));
  feed.wake();
  t.deepEqual(reader.events, ['target', 'end {"error":{"code":"unavailable","message":"stopping"}}']);
});

test('a batch of a feed by name waits for bans, goes before configurations, and to nodes that follow it only', (t) => {
  const others = new Map([...heads().others, ['made-up', { epoch: EPOCH, position: 0n }]]);
  const pushed: [string, string[]][] = [];
  const feed = new ClusterFeed('c', heads(0, 0, { others }), FEEDS, {
    pushed: (_cluster, name, _batch, _now, exempt) => pushed.push([name, [...(exempt ?? [])]]),
  });
  const old = new Reader();
  const able = new Reader();
  start(feed, old, 0n, 0n, { ...node(), nodeId: 'old' });
  start(feed, able, 0n, 0n, node(['feeds-v1']));
  feed.appendConfig(delta(1), new Uint8Array(32), []);
  feed.append('made-up', { ...ban(1), frame: batchFrame(9, new Uint8Array([1])) });
  feed.append('bans', ban(1));
  feed.wake();
  t.deepEqual(able.events, ['target', 'banBatch1', 'feedBatch1', 'configDelta1']);
  t.deepEqual(old.events, ['target', 'banBatch1', 'configDelta1']);
  t.deepEqual(pushed, [
    ['config', []],
    ['made-up', ['old']],
    ['bans', []],
  ]);
});

test('the target names places of feeds by name to nodes that follow them, and a stream goes on from the own one', (t) => {
  const others = new Map([...heads().others, ['made-up', { epoch: EPOCH, position: 4n }]]);
  const feed = new ClusterFeed('c', heads(0, 0, { others }), FEEDS);
  const places = (features: string[]) =>
    feed.target(0, node(features)).feeds.map(({ feed, sequence }) => [feed, sequence]);
  t.deepEqual(places([]), []);
  t.deepEqual(places(['feeds-v1']), [['made-up', 4n]]);
  feed.append('made-up', { ...ban(5), from: 4n, to: 5n, frame: batchFrame(9, new Uint8Array([5])) });
  const reader = new Reader();
  const held = [create(FeedPositionSchema, { feed: 'made-up', epoch: EPOCH, sequence: 4n })];
  const stream = new WatchStream(node(['feeds-v1']), reader, feed, { feeds: held });
  stream.pump();
  t.deepEqual(reader.events, ['target', 'feedBatch5']);
});
