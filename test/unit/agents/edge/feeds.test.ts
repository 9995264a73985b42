import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { BanBatchSchema, BanSchema, BanSource, OwnBanLiftSchema } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { ConfigPositionSchema } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import { TargetSchema } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { TestAuthority } from '../helpers/authority.ts';
import { TestConsole } from '../helpers/console.ts';
import { type Feeds, openFeeds } from '../helpers/feeds.ts';
import { temporaryFolder, until } from '../helpers/folder.ts';

async function start(t: ExecutionContext): Promise<{ testConsole: TestConsole; folder: string }> {
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  t.teardown(() => testConsole.stop());
  return { testConsole, folder: temporaryFolder(t) };
}

const site = (id: string, text: string, features: string[] = []) => ({
  kind: 'site',
  id,
  body: Buffer.from(text),
  features,
});

function ban(id: string, cidr: string, seconds = 3600, siteId = '') {
  const now = Date.now();
  return create(BanSchema, {
    id,
    cidr,
    siteId,
    source: BanSource.MANUAL,
    createdAtMs: BigInt(now),
    expiresAtMs: BigInt(now + seconds * 1000),
    reason: 'abuse',
  });
}

const inStep = (feeds: Feeds, testConsole: TestConsole) => (): boolean =>
  !feeds.configFeed.pulling &&
  feeds.config.position.revision === testConsole.revision &&
  feeds.config.position.epoch === testConsole.epoch &&
  Buffer.compare(feeds.config.position.setHash, testConsole.position().setHash) === 0;

const bansInStep = (feeds: Feeds, testConsole: TestConsole) => (): boolean =>
  !feeds.banFeed.pulling &&
  feeds.bans.position.epoch === testConsole.banEpoch &&
  feeds.bans.position.sequence === testConsole.banSequence;

test('a new node takes a snapshot in pages, then follows pushes one by one', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish(Array.from({ length: 8 }, (_, index) => site(`s${index}`, `body ${index}`)));
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  t.is(feeds.config.size, 8);
  t.deepEqual(feeds.pushed, ['reload']);
  testConsole.publish([site('s1', 'changed')]);
  testConsole.publish([], [{ kind: 'site', id: 's2' }]);
  await until(t, 'pushes', inStep(feeds, testConsole));
  t.deepEqual(feeds.pushed, ['reload', '1->2', '2->3']);
  t.is(feeds.config.size, 7);
  t.true(await feeds.config.verify());
});

test('a restart reads everything from disk and asks for nothing', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'one'), site('b', 'two')]);
  testConsole.changeBans([ban('b1', '192.0.2.1/32')]);
  const first = await openFeeds(t, folder, testConsole);
  first.connect();
  await until(t, 'both', () => inStep(first, testConsole)() && bansInStep(first, testConsole)());
  await first.close();
  const pulls = testConsole.configRequests.length;
  const second = await openFeeds(t, folder, testConsole);
  t.is(second.config.position.revision, 1n);
  t.is(second.config.size, 2);
  t.is(second.bans.size, 1);
  second.connect();
  await until(t, 'connected', () => testConsole.watchers === 1);
  t.is(testConsole.watches.at(-1)!.config!.revision, 1n);
  t.is(testConsole.configRequests.length, pulls);
});

test('changes that were never pushed are pulled as one delta', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'one')]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  testConsole.pushing = false;
  testConsole.publish([site('b', 'two')]);
  testConsole.publish([site('c', 'three')], [{ kind: 'site', id: 'a' }]);
  testConsole.push({ case: 'target', value: testConsole.target() });
  await until(t, 'pull', inStep(feeds, testConsole));
  t.deepEqual(feeds.pushed, ['reload', '1->3']);
});

test('a long way is walked in several deltas without waiting for the next target', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'one')]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  testConsole.pushing = false;
  testConsole.deltaReach = 2n;
  for (let index = 0; index < 5; index++) testConsole.publish([site(`n${index}`, 'x')]);
  testConsole.push({ case: 'target', value: testConsole.target() });
  await until(t, 'pulls', inStep(feeds, testConsole));
  t.deepEqual(feeds.pushed, ['reload', '1->3', '3->5', '5->6']);
});

test('a snapshot whose checkpoint moves between two pages starts over by itself', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish(Array.from({ length: 9 }, (_, index) => site(`s${index}`, `body ${index}`)));
  testConsole.pushing = false;
  let calls = 0;
  testConsole.onCall = (method) => {
    if (method !== 'getConfig' || ++calls !== 2) return;
    testConsole.publish([site('s0', 'moved')]);
    testConsole.restartPages = true;
  };
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  t.true(await feeds.config.verify());
  t.false(feeds.lines.some((line) => line.includes('pull failed')));
});

test('a lost connection is opened again and what was missed is fetched', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'one')]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  for (let round = 0; round < 3; round++) {
    testConsole.cut();
    testConsole.publish([site('a', `round ${round}`)]);
    testConsole.changeBans([ban(`r${round}`, '192.0.2.1/32')]);
    await until(t, `round ${round}`, () => inStep(feeds, testConsole)() && bansInStep(feeds, testConsole)());
  }
  t.is(feeds.bans.size, 3);
});

test('another epoch is repaired by buckets, not by a full transfer', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish(Array.from({ length: 40 }, (_, index) => site(`s${index}`, `body ${index}`)));
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  testConsole.pushing = false;
  testConsole.epoch += 1n;
  testConsole.publish([site('s3', 'restored')], [{ kind: 'site', id: 's4' }]);
  const before = testConsole.configRequests.length;
  testConsole.push({ case: 'target', value: testConsole.target() });
  await until(t, 'repair', inStep(feeds, testConsole));
  t.is(feeds.config.size, 39);
  t.true(testConsole.configRequests.slice(before).some((request) => request.bucketSums.length === 4096 * 32));
  t.false(testConsole.configRequests.slice(before).some((request) => request.pageToken !== ''));
  t.true(await feeds.config.verify());
});

test('a hash that does not match leads to a repair', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'one'), site('b', 'two')]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  // A delta that forgets one of its entries.
  testConsole.pushing = false;
  testConsole.publish([site('a', 'one!'), site('b', 'two!')]);
  const delta = testConsole.deltaSince(1n);
  delta.upserts.pop();
  feeds.configFeed.onDelta(delta, performance.now());
  await until(t, 'repair', inStep(feeds, testConsole));
  t.true(await feeds.config.verify());
});

test('an entry that the disk lost while running is fetched again and the file made sound', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'first body'), site('b', 'second body'), site('c', 'third body')]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  const path = join(folder, 'config.journal');
  const bytes = readFileSync(path);
  bytes[bytes.indexOf('second body')]! ^= 1;
  writeFileSync(path, bytes);
  t.false(await feeds.config.verify());
  feeds.configFeed.startRepair('disk');
  await until(t, 'repaired', () => inStep(feeds, testConsole)() && feeds.config.size === 3);
  t.true(await feeds.config.verify());
  await feeds.config.compactIfWorthwhile();
  await feeds.close();
  const again = await openFeeds(t, folder, testConsole);
  t.is(again.config.problem, '');
  t.is(again.config.size, 3);
  t.true(await again.config.verify());
});

test('a damaged journal is told, set aside and healed by the console', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'first body'), site('b', 'second body')]);
  testConsole.changeBans([ban('b1', '192.0.2.1/32')]);
  const first = await openFeeds(t, folder, testConsole);
  first.connect();
  await until(t, 'both', () => inStep(first, testConsole)() && bansInStep(first, testConsole)());
  await first.close();
  for (const [name, text] of [
    ['config.journal', 'first body'],
    ['bans.journal', '192.0.2.1'],
  ] as const) {
    const path = join(folder, name);
    const bytes = readFileSync(path);
    bytes[bytes.indexOf(text)]! ^= 1;
    writeFileSync(path, bytes);
  }
  const second = await openFeeds(t, folder, testConsole);
  t.not(second.config.problem + second.bans.problem, '');
  t.true(readdirSync(folder).some((name) => name.startsWith('config.journal.corrupt-')));
  second.connect();
  await until(t, 'healed', () => inStep(second, testConsole)() && bansInStep(second, testConsole)());
  t.is(second.config.size, 2);
  t.is(second.bans.size, 1);
});

test('entries that need a capability the node lacks are taken like any other, by delta, repair and snapshot', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish([site('a', 'one', ['cache-v9'])]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  testConsole.publish([site('b', 'two', ['cache-v9'])]);
  await until(t, 'delta', inStep(feeds, testConsole));
  feeds.configFeed.onMissingFeatures(['cache-v9']);
  testConsole.publish([site('c', 'three')]);
  await until(t, 'what comes beside it', inStep(feeds, testConsole));
  t.is(feeds.config.size, 3);
  t.is(feeds.configFeed.message, '');
  t.deepEqual(feeds.configFeed.missing, ['cache-v9']);
});

test('a snapshot goes on where it was interrupted', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.publish(Array.from({ length: 12 }, (_, index) => site(`s${index}`, `body ${index}`)));
  let pages = 0;
  testConsole.onCall = (method) => {
    if (method === 'getConfig' && ++pages === 3) throw new ConnectError('not now', Code.Unavailable);
  };
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'snapshot', inStep(feeds, testConsole));
  const tokens = testConsole.configRequests.map((request) => request.pageToken).filter((token) => token !== '');
  t.deepEqual([...new Set(tokens)].length, tokens.length, 'no page was fetched twice');
});

test('a ban list of another epoch replaces all bans', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.changeBans(Array.from({ length: 7 }, (_, index) => ban(`b${index}`, `192.0.2.${index}/32`)));
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'bans', bansInStep(feeds, testConsole));
  t.is(feeds.bans.size, 7);
  testConsole.banEpoch += 1n;
  testConsole.bans.delete('b3');
  testConsole.push({ case: 'target', value: testConsole.target() });
  await until(t, 'replaced', bansInStep(feeds, testConsole));
  t.is(feeds.bans.size, 6);
  t.deepEqual(
    feeds.replacing.map(({ epoch, kept, held }) => [epoch, kept.has('b3'), kept.size, held]),
    [[testConsole.banEpoch, false, 6, 7]],
    'told once, while all are still held',
  );
});

test('the mark of a position is kept with it, over a restart too, and said with it', async (t) => {
  const { testConsole, folder } = await start(t);
  const marked = (feeds: Feeds) => () =>
    inStep(feeds, testConsole)() &&
    bansInStep(feeds, testConsole)() &&
    Buffer.compare(feeds.config.position.mark, testConsole.configMark()) === 0 &&
    Buffer.compare(feeds.bans.position.mark, testConsole.banMark()) === 0;
  testConsole.publish([site('a', 'one'), site('b', 'two')]);
  testConsole.changeBans([ban('b1', '192.0.2.1/32')]);
  const first = await openFeeds(t, folder, testConsole);
  first.connect();
  await until(t, 'snapshot and all bans', marked(first));
  testConsole.publish([site('a', 'pushed')]);
  testConsole.changeBans([ban('b2', '192.0.2.2/32')]);
  await until(t, 'pushes', marked(first));
  testConsole.pushing = false;
  testConsole.publish([site('a', 'pulled')]);
  testConsole.changeBans([ban('b3', '192.0.2.3/32')]);
  testConsole.push({ case: 'target', value: testConsole.target() });
  await until(t, 'pulls', marked(first));
  testConsole.epoch += 1n;
  testConsole.push({ case: 'target', value: testConsole.target() });
  await until(t, 'repair', marked(first));
  await first.close();
  const second = await openFeeds(t, folder, testConsole);
  t.true(marked(second)());
  second.connect();
  await until(t, 'connected', () => testConsole.watches.length === 2);
  const { config, bans } = testConsole.watches[1]!;
  t.deepEqual(Buffer.from(config!.mark), testConsole.configMark());
  t.deepEqual(Buffer.from(bans!.mark), testConsole.banMark());
});

test('a node ahead of the console that is told to start over repairs what it holds and fetches all bans', async (t) => {
  const authority = await TestAuthority.create();
  const [before, restored] = [await TestConsole.start({ authority }), await TestConsole.start({ authority })];
  t.teardown(() => before.stop());
  t.teardown(() => restored.stop());
  const folder = temporaryFolder(t);
  for (const each of [before, restored]) {
    each.publish([site('a', 'one'), site('b', 'two')]);
    each.changeBans([ban('b1', '192.0.2.1/32')]);
  }
  before.publish([site('a', 'forgotten'), site('c', 'three')]);
  before.changeBans([ban('b2', '192.0.2.2/32')]);
  const first = await openFeeds(t, folder, before);
  first.connect();
  await until(t, 'ahead', () => inStep(first, before)() && bansInStep(first, before)());
  await first.close();
  const feeds = await openFeeds(t, folder, restored);
  feeds.connect();
  await until(t, 'connected', () => restored.watchers === 1);
  const { epoch, track, revision, setHash } = feeds.config.position;
  const other = setHash.map((byte) => byte ^ 0xff);
  const config = create(ConfigPositionSchema, { epoch, track, revision, setHash: other });
  const target = create(TargetSchema, { config, bans: {}, serverTimeMs: restored.now() });
  restored.push({ case: 'target', value: target });
  await until(t, 'started over', () => inStep(feeds, restored)() && bansInStep(feeds, restored)());
  t.deepEqual([feeds.config.size, feeds.bans.size], [2, 1]);
  t.true(await feeds.config.verify());
  t.true(restored.configRequests.some(({ bucketSums }) => bucketSums.length > 0));
});

test('malformed bans are left out and the rest of the batch applies', async (t) => {
  const { testConsole, folder } = await start(t);
  testConsole.changeBans([ban('ok', '192.0.2.1/32')]);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'bans', bansInStep(feeds, testConsole));
  testConsole.changeBans([
    ban('wide', '10.0.0.0/8'),
    ban('bad id', '192.0.2.2/32'),
    ban('text', 'all of them'),
    ban('past', '192.0.2.3/32', -5),
    ban('mapped', '::ffff:192.0.2.99/128'),
    ban('host-bits', '192.0.2.77/24'),
  ]);
  await until(t, 'batch', bansInStep(feeds, testConsole));
  t.deepEqual(
    feeds.bans
      .ordered()
      .map((row) => `${row.id} ${row.cidr}`)
      .sort(),
    ['host-bits 192.0.2.0/24', 'mapped 192.0.2.99/32', 'ok 192.0.2.1/32'],
  );
});

test('a clock that is wrong by hours does not change how long a ban lasts', async (t) => {
  const { testConsole, folder } = await start(t);
  const feeds = await openFeeds(t, folder, testConsole);
  const hours = 3600_000 * 5;
  const serverNow = Date.now() + hours;
  feeds.onEvent({
    $typeName: 'svc.node.v1.WatchEvent',
    event: { case: 'target', value: { $typeName: 'svc.node.v1.Target', serverTimeMs: BigInt(serverNow), feeds: [] } },
  });
  feeds.banFeed.onBatch(
    create(BanBatchSchema, {
      epoch: 0n,
      from: 0n,
      to: 1n,
      serverTimeMs: BigInt(serverNow - 60_000),
      upserts: [{ ...ban('b', '192.0.2.1/32'), expiresAtMs: BigInt(serverNow + 60_000) }],
    }),
    performance.now(),
  );
  const remaining = feeds.bans.globalRemainingMs('192.0.2.1/32')!;
  t.true(remaining > 50_000 && remaining <= 61_000, String(remaining));
});

for (const minutes of [-2, 2]) {
  test(`bans and lifts mean the same moment when the console's clock is ${minutes} minutes ahead`, async (t) => {
    const { testConsole, folder } = await start(t);
    testConsole.clockAheadMs = minutes * 60_000;
    const feeds = await openFeeds(t, folder, testConsole);
    feeds.connect();
    await until(t, 'the empty list', () => feeds.bans.position.epoch === testConsole.banEpoch);
    const end = Date.now() + 60_000;
    testConsole.changeBans(
      [{ ...ban('b', '192.0.2.1/32'), expiresAtMs: BigInt(end + testConsole.clockAheadMs) }],
      [],
      [
        create(OwnBanLiftSchema, {
          siteId: 's1',
          cidr: '192.0.2.2/32',
          expiresNoLaterThanMs: BigInt(end + testConsole.clockAheadMs),
        }),
      ],
    );
    await until(t, 'bans', bansInStep(feeds, testConsole));
    const remaining = feeds.bans.globalRemainingMs('192.0.2.1/32')!;
    t.true(remaining > 30_000 && remaining <= 61_000, String(remaining));
    const lifts = feeds.banChanges.flatMap((change) => (change === 'reload' ? [] : change.liftedOwn));
    t.is(lifts.length, 1);
    t.true(Math.abs(Number(lifts[0]!.expiresNoLaterThanMs) - end) < 30_000);
  });
}

test('property: any history of publishes with lost, doubled and reordered deltas ends where the console is', async (t) => {
  const { testConsole, folder } = await start(t);
  const feeds = await openFeeds(t, folder, testConsole);
  feeds.connect();
  await until(t, 'connected', () => testConsole.watchers === 1);
  testConsole.pushing = false;
  const step = fc.record({
    id: fc.integer({ min: 0, max: 6 }),
    remove: fc.boolean(),
    delivery: fc.constantFrom('push', 'lose', 'double', 'late', 'early'),
  });
  let text = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const late: ReturnType<TestConsole['deltaSince']>[] = [];
      for (const { id, remove, delivery } of steps) {
        const base = testConsole.revision;
        if (remove && testConsole.entries.has(`site/s${id}`)) testConsole.publish([], [{ kind: 'site', id: `s${id}` }]);
        else testConsole.publish([site(`s${id}`, `text ${text++}`)]);
        const delta = testConsole.deltaSince(base);
        if (delivery === 'late') late.push(delta);
        else if (delivery === 'early') late.unshift(delta);
        else if (delivery !== 'lose') feeds.configFeed.onDelta(delta, 0);
        if (delivery === 'double') feeds.configFeed.onDelta(delta, 0);
      }
      for (const delta of late) feeds.configFeed.onDelta(delta, 0);
      testConsole.push({ case: 'target', value: testConsole.target() });
      await until(t, 'in step', inStep(feeds, testConsole));
      return feeds.config.size === testConsole.entries.size && (await feeds.config.verify());
    }),
    { numRuns: 25 },
  );
  await feeds.close();
  const again = await openFeeds(t, folder, testConsole);
  t.true(inStep(again, testConsole)());
  t.true(await again.config.verify());
});
