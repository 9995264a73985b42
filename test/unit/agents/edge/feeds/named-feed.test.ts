// A feed by name on the node: words that the console adds, of which it keeps the last changes only.
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { type FeedOwner, NamedFeed } from '../../../../../agents/edge/feeds/named-feed.ts';
import { NodeReport } from '../../../../../agents/edge/lib/node-report.ts';
import type { NodeChannel } from '../../../../../agents/kit/channel-client.ts';
import { GetStatusResponseSchema } from '../../../../../proto/gen/svc/edge/v1/edge_pb.js';
import {
  FeedBatchSchema,
  type FeedPosition,
  FeedPositionSchema,
  type GetFeedRequest,
  GetFeedResponseSchema,
} from '../../../../../proto/gen/svc/node/v1/feeds_pb.js';
import { TargetSchema } from '../../../../../proto/gen/svc/node/v1/node_pb.js';
import { temporaryFolder, until } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';

const NAME = 'made-up';
const PAGE = 2;

/** The console: word n is change n, and changes up to the horizon are not kept one by one. */
class Console {
  words: string[] = [];
  horizon = 0n;
  epoch = 5n;
  readonly asked: (bigint | undefined)[] = [];

  get position(): FeedPosition {
    return this.at(BigInt(this.words.length));
  }

  at(sequence: bigint): FeedPosition {
    const mark = Buffer.from(`mark ${this.epoch} ${sequence}`);
    return create(FeedPositionSchema, { feed: NAME, epoch: this.epoch, sequence, mark });
  }

  get target() {
    return create(TargetSchema, { feeds: [this.position] });
  }

  /** The batch of the last word. */
  say(word: string) {
    const from = BigInt(this.words.length);
    this.words.push(word);
    const { feed, epoch, mark } = this.position;
    return create(FeedBatchSchema, { feed, epoch, from, to: from + 1n, body: Buffer.from(word), mark });
  }

  channel(): NodeChannel {
    return { getFeed: async (request: GetFeedRequest) => this.answer(request) } as unknown as NodeChannel;
  }

  private answer({ after, pageToken }: GetFeedRequest) {
    this.asked.push(after?.sequence);
    const { position } = this;
    const reset =
      !after || after.epoch !== this.epoch || after.sequence < this.horizon || after.sequence > position.sequence;
    const from = pageToken === '' ? (reset ? 0 : Number(after!.sequence)) : Number(pageToken);
    const body = Buffer.from(this.words.slice(from, from + PAGE).join(' '));
    const nextPageToken = from + PAGE < this.words.length ? String(from + PAGE) : '';
    return create(GetFeedResponseSchema, { position, reset, body, nextPageToken });
  }
}

/** What the node does with words: it keeps them. */
class Words implements FeedOwner {
  list: string[] = [];
  outcome: 'continue' | 'startOver' = 'continue';
  failing = 0;
  readonly reasons: string[] = [];

  apply(body: Uint8Array): void {
    if (this.failing-- > 0) throw new Error('no room');
    this.list.push(...Buffer.from(body).toString().split(' '));
  }
  replace(bodies: readonly Uint8Array[]): void {
    this.list = [];
    for (const body of bodies) this.apply(body);
  }
  snapshot(): Uint8Array[] {
    return [Buffer.from(this.list.join(' '))];
  }
  unreadable(reason: string): 'continue' | 'startOver' {
    this.reasons.push(reason);
    return this.outcome;
  }
}

function setUp(t: ExecutionContext) {
  const folder = temporaryFolder(t);
  const path = join(folder, 'feed.journal');
  const console = new Console();
  const { log } = memoryLog();
  const start = (owner = new Words()) => {
    const applied: bigint[] = [];
    const feed = new NamedFeed({
      name: NAME,
      owner,
      path,
      nodeId: 'n',
      clusterId: 'c',
      log,
      channel: () => console.channel(),
      applied: ({ sequence }) => applied.push(sequence),
    });
    feed.start();
    const report = () => {
      const full = new NodeReport();
      feed.status(full);
      return full;
    };
    const stop = async () => {
      await feed.stop();
      await feed.close();
    };
    const push = (word: string) => feed.event({ case: 'feedBatch', value: console.say(word), receivedAt: 0 });
    const reached = () => until(t, 'the end of the feed', () => applied.at(-1) === console.position.sequence);
    return { feed, owner, applied, report, stop, push, reached };
  };
  return { console, path, start };
}

test('a pushed change is in force before it is acknowledged; what came before, twice or late changes nothing', async (t) => {
  const { console, start } = setUp(t);
  const node = start();
  t.deepEqual(node.report().heartbeat.feeds, [create(FeedPositionSchema, { feed: NAME })], 'at 0 before everything');
  t.is(node.report().positions.feeds, undefined);
  node.feed.event({ case: 'target', value: console.target });
  await node.reached();
  const first = console.say('one');
  node.feed.event({ case: 'feedBatch', value: first, receivedAt: 0 });
  node.feed.event({ case: 'feedBatch', value: first, receivedAt: 0 });
  await node.reached();
  node.owner.failing = 1;
  node.push('two');
  await until(t, 'a failure', () => node.report().message.includes('no room'));
  t.is(node.applied.at(-1), 1n, 'not acknowledged');
  await node.reached();
  t.deepEqual(node.owner.list, ['one', 'two']);
  t.deepEqual(node.report().heartbeat.feeds, [console.position]);
  t.is(node.report().message, '');
  t.is(console.asked.length, 1, 'a push needs no question');
  await node.stop();
});

test('after a cut the node fetches what it lacks, across pages; beyond the horizon everything', async (t) => {
  const { console, start } = setUp(t);
  const node = start();
  for (const word of ['one', 'two', 'three', 'four', 'five', 'six']) console.say(word);
  node.feed.event({ case: 'target', value: console.target });
  await node.reached();
  console.asked.length = 0;
  for (const word of ['seven', 'eight', 'nine']) console.say(word);
  node.push('ten');
  await node.reached();
  t.deepEqual(console.asked, [6n, 6n], 'from its place');
  t.is(node.owner.list.join(' '), 'one two three four five six seven eight nine ten');
  await node.stop();

  console.horizon = 12n;
  for (const word of ['eleven', 'twelve', 'thirteen']) console.say(word);
  const next = start();
  next.feed.event({ case: 'target', value: console.target });
  await next.reached();
  t.is(next.owner.list.join(' '), console.words.join(' '));
  await next.stop();
});

test('a node that starts again goes on from its journal, which is shortened to what is in force', async (t) => {
  const { console, path, start } = setUp(t);
  const node = start();
  node.feed.event({ case: 'target', value: console.target });
  await node.reached();
  const word = 'long '.repeat(1000).trim();
  for (let count = 0; count < 300; count++) node.push(count === 299 ? 'last' : word);
  await node.reached();
  node.owner.list = ['short', 'last'];
  const before = readFileSync(path).length;
  await node.feed.maintain();
  t.true(readFileSync(path).length < before / 100);
  node.push('after');
  await node.reached();
  await node.stop();

  const asked = console.asked.length;
  const next = start();
  await next.reached();
  t.deepEqual(next.owner.list, ['short', 'last', 'after']);
  t.deepEqual(next.report().positions.feeds, [console.position], 'with its mark');
  next.push('again');
  await next.reached();
  t.is(console.asked.length, asked);
  await next.stop();
});

for (const outcome of ['continue', 'startOver'] as const) {
  test(`the owner of a feed decides what a journal that cannot be read is worth: ${outcome}`, async (t) => {
    const { console, path, start } = setUp(t);
    const node = start();
    node.feed.event({ case: 'target', value: console.target });
    await node.reached();
    for (const word of ['one', 'two', 'three']) node.push(word);
    await node.reached();
    await node.stop();
    console.asked.length = 0;
    const bytes = readFileSync(path);
    bytes[bytes.indexOf('two')]! ^= 0xff;
    writeFileSync(path, bytes);

    const owner = new Words();
    owner.outcome = outcome;
    const next = start(owner);
    t.is(owner.reasons.length, 1);
    next.feed.event({ case: 'target', value: console.target });
    await next.reached();
    t.deepEqual(owner.list, ['one', 'two', 'three']);
    t.deepEqual(console.asked, outcome === 'continue' ? [1n] : [undefined, undefined]);
    await next.feed.maintain();
    await next.stop();

    const third = new Words();
    const last = start(third);
    await last.reached();
    t.deepEqual(third.list, ['one', 'two', 'three']);
    t.deepEqual(third.reasons, [], 'replaced');
    await last.stop();
  });
}

/** Words of which a data plane keeps its own copy. */
class KeptWords extends Words {
  place = 0n;
  override apply(body: Uint8Array, to?: FeedPosition): void {
    this.list = [...new Set([...this.list, ...Buffer.from(body).toString().split(' ')])];
    if (to) this.place = to.sequence;
  }
  override replace(bodies: readonly Uint8Array[], to?: FeedPosition): void {
    for (const body of bodies) this.apply(body);
    if (to) this.place = to.sequence;
  }
  override snapshot(): Uint8Array[] {
    return [];
  }
  async lacks({ sequence }: FeedPosition): Promise<boolean> {
    return this.place < sequence;
  }
}

test('a data plane that lacks a part of what it keeps gets everything anew, and the node acknowledges that alone', async (t) => {
  const { console, start } = setUp(t);
  const kept = new KeptWords();
  const node = start(kept);
  node.feed.event({ case: 'target', value: console.target });
  await node.reached();
  for (const word of ['one', 'two', 'three']) node.push(word);
  await node.reached();
  await node.feed.maintain();
  const status = (instanceId: string) => create(GetStatusResponseSchema, { instanceId });
  const asked = console.asked.length;
  node.feed.event({ case: 'dataPlaneStatus', value: status('first') });
  node.push('four');
  await node.reached();
  t.deepEqual([console.asked.length, kept.list.length], [asked, 4], 'it lacks nothing');

  // Another process has an older copy.
  Object.assign(kept, { list: ['one'], place: 1n });
  const acknowledged = node.applied.length;
  node.feed.event({ case: 'dataPlaneStatus', value: status('second') });
  await until(t, 'a second acknowledgement', () => node.applied.length > acknowledged);
  t.deepEqual([kept.list, kept.place, console.asked.at(-1)], [console.words, 4n, undefined]);
  await node.stop();

  // It lost some while the agent was away.
  Object.assign(kept, { list: ['one'], place: 1n });
  const next = start(kept);
  await next.reached();
  t.deepEqual([kept.list, next.applied], [console.words, [4n]]);
  await next.stop();
  console.asked.length = 0;
  const last = start(kept);
  await last.reached();
  t.deepEqual([kept.list, console.asked], [console.words, []]);
  await last.stop();
});

test('a crash in the middle of a change leaves the node at the change before', async (t) => {
  const { console, path, start } = setUp(t);
  const node = start();
  node.feed.event({ case: 'target', value: console.target });
  await node.reached();
  node.push('one');
  node.push('two');
  await node.reached();
  await node.stop();
  truncateSync(path, readFileSync(path).length - 3);
  const owner = new Words();
  const next = start(owner);
  await until(t, 'what the journal has', () => next.applied.length > 0);
  t.deepEqual([next.applied, owner.list, owner.reasons], [[1n], ['one'], []]);
  next.feed.event({ case: 'target', value: console.target });
  await next.reached();
  t.deepEqual(owner.list, ['one', 'two']);
  await next.stop();
});
