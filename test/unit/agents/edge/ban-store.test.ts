import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { BanStore, MAX_BAN_MS } from '../../../../agents/edge/bans/ban-store.ts';
import { ServerClock } from '../../../../agents/edge/lib/server-clock.ts';
import { type Ban, BanPositionSchema, BanSchema, BanSource } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { START, TestClock } from '../helpers/clock.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { onFullDisk } from '../helpers/full-disk.ts';
import { memoryLog } from '../helpers/log.ts';

const MINUTE = 60_000;

function ban(id: string, cidr: string, minutes: number, extra: Partial<Ban> = {}): Ban {
  return create(BanSchema, {
    id,
    cidr,
    source: BanSource.MANUAL,
    createdAtMs: BigInt(START),
    expiresAtMs: BigInt(START + minutes * MINUTE),
    ...(extra as object),
  });
}

const at = (sequence: number) => create(BanPositionSchema, { epoch: 1n, sequence: BigInt(sequence) });

function setUp(t: ExecutionContext) {
  const path = join(temporaryFolder(t), 'bans.journal');
  const clock = new TestClock();
  const open = () => BanStore.open({ path, nodeId: 'n', clusterId: 'c', log: memoryLog().log, clock });
  const put = (store: BanStore, sequence: number, bans: Ban[], removed: string[] = []) =>
    store.apply(at(sequence), store.accept(bans, 0).rows, removed);
  return { path, clock, open, put };
}

test('bans come back after a restart with the time they have left', async (t) => {
  const { clock, open, put } = setUp(t);
  const store = open();
  put(store, 1, [ban('a', '192.0.2.1/32', 10), ban('b', '192.0.2.2/32', 1)]);
  await store.close();
  clock.pass(2 * MINUTE);
  const again = open();
  t.is(again.position.sequence, 1n);
  t.is(again.globalRemainingMs('192.0.2.1/32'), 8 * MINUTE);
  t.is(again.globalRemainingMs('192.0.2.2/32'), undefined);
  t.is(again.size, 1);
  await again.close();
});

test('a step of the wall clock while running changes no remaining time, here or after the next restart', async (t) => {
  for (const step of [-400 * MINUTE, 400 * MINUTE]) {
    const { clock, open, put } = setUp(t);
    const store = open();
    put(store, 1, [ban('a', '192.0.2.1/32', 10)]);
    clock.wallMs += step;
    clock.pass(3 * MINUTE);
    t.is(store.globalRemainingMs('192.0.2.1/32'), 7 * MINUTE);
    t.is(Number(store.toMessage(store.ordered()[0]!).expiresAtMs), clock.wallMs + 7 * MINUTE);
    await store.maintain();
    await store.close();
    clock.pass(MINUTE);
    const again = open();
    t.is(again.globalRemainingMs('192.0.2.1/32'), 6 * MINUTE);
    await again.close();
  }
});

test('a machine that starts with a clock of long ago keeps bans for seven days at most', async (t) => {
  const { clock, open, put } = setUp(t);
  const store = open();
  put(store, 1, [ban('a', '192.0.2.1/32', 10)]);
  await store.close();
  clock.wallMs = 1000;
  const again = open();
  t.is(again.globalRemainingMs('192.0.2.1/32'), MAX_BAN_MS);
  await again.close();
});

test('several bans of one address: the longest counts, and lifting it leaves the next', async (t) => {
  const { open, put } = setUp(t);
  const store = open();
  put(store, 1, [
    ban('manual', '192.0.2.1/32', 10),
    ban('auto', '192.0.2.1/32', 30, { source: BanSource.AUTO }),
    ban('site', '192.0.2.1/32', 60, { siteId: 's1' }),
  ]);
  t.is(store.globalRemainingMs('192.0.2.1/32'), 30 * MINUTE);
  const { globalCidrs } = put(store, 2, [], ['auto']);
  t.deepEqual([...globalCidrs], ['192.0.2.1/32']);
  t.is(store.globalRemainingMs('192.0.2.1/32'), 10 * MINUTE);
  put(store, 3, [], ['manual', 'unknown']);
  t.is(store.globalRemainingMs('192.0.2.1/32'), undefined);
  t.is(store.size, 1);
  await store.close();
});

test('a ban that moves to another address frees the first', async (t) => {
  const { open, put } = setUp(t);
  const store = open();
  put(store, 1, [ban('a', '192.0.2.1/32', 10)]);
  const { globalCidrs } = put(store, 2, [ban('a', '192.0.2.2/32', 10)]);
  t.deepEqual([...globalCidrs].sort(), ['192.0.2.1/32', '192.0.2.2/32']);
  t.is(store.globalRemainingMs('192.0.2.1/32'), undefined);
  await store.close();
});

test('room goes to manual bans oldest first, then to automatic ones newest first', async (t) => {
  const { open, put } = setUp(t);
  const store = open();
  const made = (id: string, minutes: number, source: BanSource) =>
    ban(id, `192.0.2.${minutes + 100}/32`, 60, { source, createdAtMs: BigInt(START + minutes) });
  put(store, 1, [
    made('a-old', 1, BanSource.AUTO),
    made('m-new', 4, BanSource.MANUAL),
    made('a-new', 3, BanSource.AUTO),
    made('m-old', 2, BanSource.MANUAL),
  ]);
  t.deepEqual(
    store.ordered().map((row) => row.id),
    ['m-old', 'm-new', 'a-new', 'a-old'],
  );
  await store.close();
});

test('a ban that came back expired or malformed removes its older version', async (t) => {
  const { open, put } = setUp(t);
  const store = open();
  put(store, 1, [ban('a', '192.0.2.1/32', 10), ban('b', '192.0.2.2/32', 10)]);
  const { rows, refusedIds } = store.accept([ban('a', '192.0.2.1/32', -1), ban('b', 'nonsense', 10)], 0);
  t.deepEqual([rows.length, refusedIds], [0, ['a', 'b']]);
  store.apply(at(2), rows, refusedIds);
  t.is(store.size, 0);
  await store.close();
});

test('the journal shrinks when it is mostly history', async (t) => {
  const { path, open, put } = setUp(t);
  const store = open();
  for (let round = 1; round <= 1000; round++)
    put(
      store,
      round,
      Array.from({ length: 10 }, (_, index) => ban(`b${index}`, `192.0.2.${index}/32`, 10 + (round % 7))),
    );
  t.true(readFileSync(path).length > 256 * 1024);
  await store.maintain();
  t.true(readFileSync(path).length < 4096);
  await store.close();
  const again = open();
  t.is(again.size, 10);
  t.is(again.position.sequence, 1000n);
  await again.close();
});

test('bans that are over are forgotten', async (t) => {
  const { clock, open, put } = setUp(t);
  const store = open();
  put(store, 1, [ban('a', '192.0.2.1/32', 1), ban('b', '192.0.2.2/32', 5)]);
  clock.pass(2 * MINUTE);
  await store.maintain();
  t.is(store.size, 1);
  await store.close();
});

test('the console clock: the sample that travelled least counts, whatever the wall clock does', (t) => {
  const clock = new TestClock();
  const server = new ServerClock(clock);
  t.is(server.offsetMs(BigInt(START + 500)), 500);
  const ahead = 7000;
  server.observe(BigInt(clock.wallMs + ahead - 900));
  server.observe(BigInt(clock.wallMs + ahead - 3));
  server.observe(BigInt(clock.wallMs + ahead - 400));
  t.is(server.offsetMs(), ahead - 3);
  clock.wallMs += 1_000_000;
  t.is(server.offsetMs(), ahead - 3 - 1_000_000);
  clock.pass(6 * MINUTE);
  server.observe(BigInt(clock.wallMs));
  t.is(server.offsetMs(), 0);
});

const FULL_DISK = `
import { existsSync, rmSync, writeFileSync } from 'node:fs';
const { BanStore } = await import(process.argv[1] + '/agents/edge/bans/ban-store.ts');
const { createLog } = await import(process.argv[1] + '/agents/kit/log.ts');
const folder = process.argv[2];
const open = () => BanStore.open({ path: folder + '/bans.journal', nodeId: 'n', clusterId: 'c', log: createLog('info', {}, () => undefined) });
const row = (id) => ({ id, siteId: '', cidr: '192.0.2.' + (id.length % 250) + '/32', source: 1, createdAtMs: Date.now(), expiresAt: performance.now() + 3.6e6, reason: 'abuse' });
const at = (sequence) => ({ $typeName: 'svc.node.v1.BanPosition', epoch: 1n, sequence, mark: new Uint8Array() });
const store = open();
store.apply(at(1n), [row('a')], []);
const results = [store.problem === ''];
let filled = 0;
for (let size = 1 << 19; size >= 1; size >>= 1) {
  try { writeFileSync(folder + '/ballast' + filled, Buffer.alloc(size)); filled++; } catch { rmSync(folder + '/ballast' + filled, { force: true }); }
}
const { onDisk, removedIds } = await store.replaceAll(at(5n), Array.from({ length: 3000 }, (_, index) => row('b' + index)));
results.push(!onDisk, removedIds.join() === 'a', store.problem !== '', store.size === 3000);
store.apply(at(6n), [row('c')], []);
await store.maintain();
results.push(store.problem !== '', store.size === 3001);
for (let index = 0; index < filled; index++) rmSync(folder + '/ballast' + index, { force: true });
await store.maintain();
results.push(store.problem === '');
store.apply(at(7n), [row('d')], []);
await store.close();
const again = open();
results.push(again.size === 3002, again.position.sequence === 7n, again.problem === '');
await again.close();
console.log(JSON.stringify(results));
`;

test('a full disk: a new ban list is in force at once and written when there is room', (t) => {
  t.deepEqual(onFullDisk(t, FULL_DISK), Array(11).fill(true));
});

const MANY_BANS = `
import { rmSync, statSync, writeFileSync } from 'node:fs';
const { BanStore } = await import(process.argv[1] + '/agents/edge/bans/ban-store.ts');
const { createLog } = await import(process.argv[1] + '/agents/kit/log.ts');
const folder = process.argv[2];
const path = folder + '/bans.journal';
const open = () => BanStore.open({ path, nodeId: 'n', clusterId: 'c', log: createLog('info', {}, () => undefined) });
let number = 0;
const row = (id, reason = 'abuse') => ({ id, siteId: '', cidr: '192.0.2.' + (++number % 250) + '/32', source: 1, createdAtMs: Date.now(), expiresAt: performance.now() + 3.6e6, reason });
const at = (sequence) => ({ $typeName: 'svc.node.v1.BanPosition', epoch: 1n, sequence, mark: new Uint8Array() });
let store = open();
store.apply(at(1n), [row('a'), row('b'), row('c')], []);
const results = [store.problem === ''];
const bytesBefore = statSync(path).size;
let filled = 0;
for (let size = 1 << 19; size >= 1; size >>= 1) {
  try { writeFileSync(folder + '/ballast' + filled, Buffer.alloc(size)); filled++; } catch { rmSync(folder + '/ballast' + filled, { force: true }); }
}
let sequence = 1n;
for (let round = 0; round < 2000; round++) store.apply(at(++sequence), [row('a', 'r' + round + ' ' + 'x'.repeat(5000)), row('short' + round)], round ? ['short' + (round - 1)] : []);
store.apply(at(++sequence), [row('late')], ['b', 'short1999']);
await store.maintain();
results.push(store.problem !== '', store.size === 3);
const { target, upserts, removedIds } = store.changeSince(at(1n));
results.push(target.sequence === sequence, upserts.map(({ id }) => id).sort().join() === 'a,late', removedIds.join() === 'b');
results.push(store.changeSince(at(2n)) === undefined);
for (let index = 0; index < filled; index++) rmSync(folder + '/ballast' + index, { force: true });
await store.maintain();
results.push(store.problem === '', store.changeSince(at(1n)) === undefined, statSync(path).size < bytesBefore + 7000);
await store.close();
store = open();
results.push(store.size === 3, store.position.sequence === sequence, store.ordered().find(({ id }) => id === 'a').reason.startsWith('r1999'));
await store.close();
console.log(JSON.stringify(results));
`;

test('on a full disk the final state of each ban waits, however often it changed', (t) => {
  t.deepEqual(onFullDisk(t, MANY_BANS), Array(13).fill(true));
});
