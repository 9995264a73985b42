import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { ConfigStore } from '../../../../agents/edge/config/config-store.ts';
import { hashEntry } from '../../../../agents/edge/config/entry.ts';
import { SetSum } from '../../../../agents/edge/config/set-sum.ts';
import { BUCKET_COUNT, bodyHash, bucketOf, entryHash, fromSum, moveSum } from '../../../../proto/entry-hash.ts';
import { type Entry, EntryKeySchema, EntrySchema } from '../../../../proto/gen/svc/config/v1/entry_pb.js';
import { ConfigPositionSchema, Track } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import { temporaryFolder } from '../helpers/folder.ts';
import { onFullDisk } from '../helpers/full-disk.ts';
import { memoryLog } from '../helpers/log.ts';

const EPOCH = 1_700_000_000_000n;

function entry(id: string, text: string, kind = 'site', features: string[] = []): Entry {
  return create(EntrySchema, { kind, id, body: Buffer.from(text), features });
}

function open(path: string, clusterId = 'cluster-1', able?: (features: readonly string[]) => boolean) {
  const seen = new Map<string, string>();
  const { log, lines } = memoryLog();
  const store = ConfigStore.open({
    path,
    nodeId: 'node-1',
    clusterId,
    log,
    observer: {
      put: (kind, id, body) => seen.set(`${kind}/${id}`, Buffer.from(body).toString()),
      remove: (kind, id) => seen.delete(`${kind}/${id}`),
      clear: () => seen.clear(),
    },
    ...(able ? { able } : {}),
  });
  const change = (upserts: Entry[], deletes: string[] = []): string[] => {
    const keys = deletes.map((id) => create(EntryKeySchema, { kind: 'site', id }));
    const setHash = store.hashAfter(upserts, keys);
    const revision = store.position.revision + 1n;
    const position = create(ConfigPositionSchema, { epoch: EPOCH, track: Track.STABLE, revision, setHash });
    return store.apply({ position, upserts, deletes: keys }).unserved!.map(({ kind, id }) => `${kind}/${id}`);
  };
  return { store, change, seen, lines };
}

function journalIn(t: ExecutionContext): string {
  return join(temporaryFolder(t), 'config.journal');
}

test('the hash of an entry and the sum over a set are those of the console', (t) => {
  const entries = [
    entry('a', ''),
    entry('ü', 'x'.repeat(1000), 'ip-list', ['b-v1', 'c-v1']),
    entry('', 'y', 'client-ip'),
  ];
  let sum = 0n;
  const mine = new SetSum();
  for (const { kind, id, body, features } of entries) {
    const expected = entryHash(kind, id, bodyHash(body), features);
    const hash = hashEntry(kind, id, body, features);
    t.deepEqual(Buffer.from(hash, 'latin1'), expected);
    mine.add(hash);
    sum = moveSum(sum, [], [expected]);
  }
  t.deepEqual(mine.toBytes(), fromSum(sum));
});

test('what a node cannot follow is marked where it came before the node served the site, across restart and compaction', async (t) => {
  const path = journalIn(t);
  const unable = () => open(path, 'cluster-1', () => false);
  const rules = (id: string, text: string) => entry(id, text, 'rules', ['rules-v9']);
  const { store, change } = unable();
  t.deepEqual(change([entry('served', '1')]), []);
  t.deepEqual(change([rules('served', '1'), rules('early', '1')]), ['rules/early'], 'before its site');
  t.deepEqual(
    change([entry('early', '1'), entry('fresh', '1'), rules('fresh', '1')]),
    ['rules/fresh'],
    'with its site',
  );
  t.deepEqual(change([entry('needy', '1', 'site', ['domains-v9']), rules('needy', '1')]), [
    'site/needy',
    'rules/needy',
  ]);
  await store.compact();
  t.deepEqual(change([entry('served', '2')]), []);
  await store.close();
  const again = unable();
  t.deepEqual(again.change([rules('served', '2')]), [], 'the site went on without it');
  t.deepEqual(again.change([rules('fresh', '2'), rules('early', '2')]), ['rules/fresh', 'rules/early']);
  t.deepEqual(again.change([entry('fresh', '3', 'rules')]), [], 'a version that needs nothing');
  t.deepEqual(again.change([rules('fresh', '3')]), [], 'and now there is a former version');
  t.deepEqual(again.change([], ['needy']), []);
  const snapshot = again.store.startSnapshot();
  const entries = [
    entry('served', '2'),
    rules('served', '2'),
    entry('new', '1'),
    rules('new', '1'),
    rules('early', '2'),
  ];
  snapshot.add(entries);
  t.deepEqual(
    snapshot.unserved.map(({ kind, id }) => `${kind}/${id}`),
    ['rules/new', 'rules/early'],
  );
  snapshot.discard();
  await again.store.close();
});

test('property: sums go up and down like numbers modulo 2^256', (t) => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const move = fc.tuple(
    fc.boolean(),
    fc.oneof(bytes, fc.constant(new Uint8Array(32).fill(255)), fc.constant(new Uint8Array(32))),
  );
  fc.assert(
    fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
      let sum = 0n;
      const mine = new SetSum();
      for (const [up, hash] of moves) {
        const text = Buffer.from(hash).toString('latin1');
        if (up) mine.add(text);
        else mine.subtract(text);
        sum = up ? moveSum(sum, [], [hash]) : moveSum(sum, [hash], []);
      }
      return mine.toBytes().equals(fromSum(sum)) && mine.copy().toBytes().equals(fromSum(sum));
    }),
  );
  t.pass();
});

test('bucket sums are those of the console', async (t) => {
  const { store, change } = open(journalIn(t));
  const entries = Array.from({ length: 50 }, (_, index) => entry(`s${index}`, `body ${index}`));
  change(entries);
  const expected = new Map<number, bigint>();
  for (const { kind, id, body, features } of entries) {
    const bucket = bucketOf(kind, id);
    expected.set(bucket, moveSum(expected.get(bucket) ?? 0n, [], [entryHash(kind, id, bodyHash(body), features)]));
  }
  const sums = store.bucketSums();
  for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) {
    t.deepEqual(Buffer.from(sums.subarray(bucket * 32, bucket * 32 + 32)), fromSum(expected.get(bucket) ?? 0n));
  }
  await store.close();
});

test('only the kinds that the agent reads are observed, at the start and at each change', async (t) => {
  const path = journalIn(t);
  const first = open(path);
  first.change([
    entry('', 'proxies', 'client-ip'),
    entry('l1', 'allow', 'ip-list'),
    entry('l1/0', 'chunk', 'ip-list-chunk'),
    entry('a', 'site'),
  ]);
  await first.store.close();
  const second = open(path);
  t.deepEqual([...second.seen.keys()].sort(), ['client-ip/', 'ip-list-chunk/l1/0', 'ip-list/l1']);
  await second.store.close();
});

test('a compaction while changes arrive loses none, and the bodies are found again', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  for (let round = 0; round < 20; round++)
    change(Array.from({ length: 30 }, (_, index) => entry(`s${index}`, `round ${round} ${'x'.repeat(500)}`)));
  const before = readFileSync(path).length;
  await store.settle(store.position, new Map());
  const compaction = store.compact();
  change([entry('s1', 'during'), entry('new', 'also during')], ['s2']);
  await compaction;
  change([entry('s3', 'after')]);
  t.true(await store.verify());
  t.true(readFileSync(path).length < before / 5);
  const { position, size } = store;
  await store.close();
  const again = open(path);
  t.is(again.store.position.revision, position.revision);
  t.is(again.store.size, size);
  t.false(again.store.hasDrifted);
  t.true(await again.store.verify());
  await again.store.close();
});

test('compaction happens by itself only when most of the file is dead', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  change([entry('a', 'x'.repeat(10_000))]);
  await store.compactIfWorthwhile();
  const small = readFileSync(path).length;
  for (let round = 0; round < 150; round++) change([entry('a', `${round}${'x'.repeat(10_000)}`)]);
  t.true(readFileSync(path).length > 1_000_000);
  await store.settle(store.position, new Map());
  await store.compactIfWorthwhile();
  t.true(readFileSync(path).length < small + 1000);
  await store.close();
});

test('the verification notices a body that changed on disk', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  change([entry('a', 'first body'), entry('b', 'second body')]);
  t.true(await store.verify());
  const bytes = readFileSync(path);
  bytes[bytes.indexOf('second body')]! ^= 1;
  writeFileSync(path, bytes);
  t.false(await store.verify());
  await store.close();
});

test('entries that do not add up to the hash of their position are kept, but are no base', async (t) => {
  const path = journalIn(t);
  const { store } = open(path);
  const position = create(ConfigPositionSchema, {
    epoch: EPOCH,
    track: Track.STABLE,
    revision: 1n,
    setHash: Buffer.alloc(32, 1),
  });
  store.apply({ position, upserts: [entry('a', 'x')], deletes: [] });
  await store.close();
  const again = open(path);
  t.true(again.store.hasDrifted);
  t.is(again.store.size, 1);
  await again.store.close();
});

test('a journal of another cluster is set aside', async (t) => {
  const path = journalIn(t);
  const first = open(path);
  first.change([entry('a', 'x')]);
  await first.store.close();
  const second = open(path, 'cluster-2');
  t.is(second.store.size, 0);
  t.not(second.store.problem, '');
  t.true(readdirSync(join(path, '..')).some((name) => name.includes('.foreign-')));
  await second.store.close();
});

test('property: after a crash at any byte the store holds exactly what one of its revisions held', async (t) => {
  const path = journalIn(t);
  const step = fc.record({
    id: fc.integer({ min: 0, max: 4 }),
    remove: fc.boolean(),
    length: fc.integer({ min: 0, max: 40 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 10 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (steps, share) => {
        writeFileSync(path, '');
        const { store, change } = open(path);
        const empty = readFileSync(path).length;
        const states = [{ hash: '', size: 0 }];
        for (const { id, remove, length } of steps) {
          if (remove) change([], [`s${id}`]);
          else change([entry(`s${id}`, 'z'.repeat(length) + states.length)]);
          states.push({ hash: Buffer.from(store.position.setHash).toString('hex'), size: store.size });
        }
        await store.close();
        const whole = readFileSync(path).length;
        truncateSync(path, empty + Math.floor((whole - empty) * share));
        const again = open(path).store;
        const state = states[Number(again.position.revision)]!;
        const same =
          again.size === state.size &&
          Buffer.from(again.position.setHash).toString('hex') === state.hash &&
          !again.hasDrifted;
        const sound = await again.verify();
        await again.close();
        return same && sound;
      },
    ),
    { numRuns: 100 },
  );
  t.pass();
});

const FULL_DISK = `
import { create } from '@bufbuild/protobuf';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
const { ConfigStore } = await import(process.argv[1] + '/agents/edge/config/config-store.ts');
const { createLog } = await import(process.argv[1] + '/agents/kit/log.ts');
const { EntrySchema } = await import(process.argv[1] + '/proto/gen/svc/config/v1/entry_pb.js');
const { ConfigPositionSchema } = await import(process.argv[1] + '/proto/gen/svc/node/v1/config_pb.js');
const path = process.argv[2] + '/config.journal';
const log = createLog('info', {}, () => undefined);
const observer = { put() {}, remove() {}, clear() {} };
const open = () => ConfigStore.open({ path, nodeId: 'n', clusterId: 'c', log, observer });
const store = open();
let revision = 0n;
const change = (id, bytes) => {
  const upserts = [create(EntrySchema, { kind: 'site', id, body: Buffer.alloc(bytes, id) })];
  const setHash = store.hashAfter(upserts, []);
  store.apply({ position: create(ConfigPositionSchema, { epoch: 1n, track: 1, revision: ++revision, setHash }), upserts, deletes: [] });
};
const results = [];
change('fits', 1000);
results.push(store.problem === '');
writeFileSync(process.argv[2] + '/ballast', Buffer.alloc(700_000));
change('large', 500_000);
change('small', 100);
results.push(store.problem !== '', store.size === 3, await store.verify());
rmSync(process.argv[2] + '/ballast');
store.flush();
results.push(store.problem === '', await store.verify());
await store.close();
const again = open();
results.push(again.size === 3, again.position.revision === 3n, !again.hasDrifted, await again.verify());
await again.close();
console.log(JSON.stringify(results));
`;

test('a full disk: changes are served from memory, told, and written when there is room', (t) => {
  t.deepEqual(onFullDisk(t, FULL_DISK), Array(10).fill(true));
});

const MANY_CHANGES = `
import { create } from '@bufbuild/protobuf';
import { rmSync, statSync, writeFileSync } from 'node:fs';
const { ConfigStore } = await import(process.argv[1] + '/agents/edge/config/config-store.ts');
const { createLog } = await import(process.argv[1] + '/agents/kit/log.ts');
const { EntrySchema, EntryKeySchema } = await import(process.argv[1] + '/proto/gen/svc/config/v1/entry_pb.js');
const { ConfigPositionSchema } = await import(process.argv[1] + '/proto/gen/svc/node/v1/config_pb.js');
const path = process.argv[2] + '/config.journal';
const log = createLog('info', {}, () => undefined);
const observer = { put() {}, remove() {}, clear() {} };
const open = () => ConfigStore.open({ path, nodeId: 'n', clusterId: 'c', log, observer });
let store = open();
let revision = 0n;
const change = (bodies, gone = []) => {
  const upserts = Object.entries(bodies).map(([id, body]) => create(EntrySchema, { kind: 'site', id, body: Buffer.from(body) }));
  const deletes = gone.map((id) => create(EntryKeySchema, { kind: 'site', id }));
  const setHash = store.hashAfter(upserts, deletes);
  store.apply({ position: create(ConfigPositionSchema, { epoch: 1n, track: 1, revision: ++revision, setHash }), upserts, deletes });
};
const results = [];
change({ a: 'a1', b: 'b1', c: 'c1' });
const inFile = store.position;
const bytesBefore = statSync(path).size;
let filled = 0;
for (let size = 1 << 19; size >= 1; size >>= 1) {
  try { writeFileSync(process.argv[2] + '/ballast' + filled, Buffer.alloc(size)); filled++; } catch { rmSync(process.argv[2] + '/ballast' + filled, { force: true }); }
}
for (let round = 0; round < 500; round++) change({ a: 'a' + round + 'x'.repeat(5000), ['short' + round]: 'y'.repeat(5000) }, round ? ['short' + (round - 1)] : []);
change({ a: 'a2', late: 'late' }, ['b', 'short499']);
results.push(store.problem !== '', store.size === 3, await store.verify());

// What the file lacks is one change with the final state of each key.
const lacks = store.changeSince(inFile);
results.push(lacks.upserts.map(({ id, body }) => id + '=' + Buffer.from(body)).sort().join() === 'a=a2,late=late');
results.push(lacks.deletes.map(({ id }) => id).join() === 'b', lacks.position.revision === revision);
results.push(store.changeSince(store.position) === undefined);

// A restart on the full disk begins where the file ends.
await store.close();
store = open();
results.push(store.size === 3, store.position.revision === 1n, !store.hasDrifted);
revision = 1n;
change({ a: 'a2', late: 'late' }, ['b']);
for (let index = 0; index < filled; index++) rmSync(process.argv[2] + '/ballast' + index, { force: true });
store.flush();
results.push(store.problem === '', store.changeSince(inFile) === undefined, statSync(path).size < bytesBefore + 1000);
await store.close();
store = open();
results.push(store.size === 3, store.position.revision === 2n, !store.hasDrifted, await store.verify());
await store.close();
console.log(JSON.stringify(results));
`;

test('on a full disk the final state of each key waits, however often it changed', (t) => {
  const results = onFullDisk(t, MANY_CHANGES);
  t.deepEqual(results, Array(17).fill(true));
});
