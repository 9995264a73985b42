// The same deed for many things.
import test from 'ava';
import {
  type BulkFailure,
  type BulkRun,
  type DoOne,
  MAX_ITEMS,
  progressOf,
  rowsOf,
  runBulk,
} from '../../../../../../console/src/shared/bulk/run-bulk.ts';

const LIMIT: BulkFailure = { code: 'BAN_PLATFORM_LIMIT', retryable: false };
const REFUSED: BulkFailure = { code: 'BAN_PROTECTED_ADDRESS', retryable: false };
const BUSY: BulkFailure = { code: 'SERVICE_UNAVAILABLE', retryable: true };
const addresses = (count: number) => Array.from({ length: count }, (_, index) => `address-${index}`);
const items = (count: number) => addresses(count).map((key) => ({ key, label: key.toUpperCase() }));
const list = (count: number): BulkRun<BulkFailure> => ({ rows: rowsOf(items(count)), running: false, stopped: '' });
const atOnce = { pause: () => Promise.resolve(), limit: 'BAN_PLATFORM_LIMIT' };
const turn = () => new Promise<void>((done) => setImmediate(done));

test('takes at most a thousand addresses', (t) => {
  t.is(list(MAX_ITEMS + 1).rows.length, 1000);
});

test('eight are on their way at a time, and each is banned once', async (t) => {
  const run = list(100);
  const banned: string[] = [];
  let inFlight = 0;
  let most = 0;
  const ban: DoOne<BulkFailure> = async (cidr) => {
    most = Math.max(most, ++inFlight);
    await turn();
    inFlight--;
    banned.push(cidr);
    return null;
  };
  await runBulk(run, ban, atOnce);
  t.is(most, 8);
  t.deepEqual(banned.sort(), addresses(100).sort());
  t.deepEqual(progressOf(run.rows), { done: 100, failed: 0, left: 0 });
  t.false(run.running);
});

test('a refused address has its reason, the others go on', async (t) => {
  const run = list(20);
  await runBulk(run, async (cidr) => (cidr === 'address-3' ? REFUSED : null), atOnce);
  t.deepEqual(progressOf(run.rows), { done: 19, failed: 1, left: 0 });
  t.is(run.rows[3]!.failure, REFUSED);
});

test('stops at the limit, and goes on with what is left once there is room', async (t) => {
  const run = list(40);
  const banned: string[] = [];
  let room = 10;
  const ban: DoOne<BulkFailure> = async (cidr) => {
    await turn();
    if (banned.length >= room) return LIMIT;
    banned.push(cidr);
    return null;
  };
  await runBulk(run, ban, atOnce);
  t.is(run.stopped, 'limit');
  t.deepEqual(progressOf(run.rows), { done: 10, failed: 0, left: 30 });
  room = 100;
  await runBulk(run, ban, atOnce);
  t.is(run.stopped, '');
  t.deepEqual(progressOf(run.rows), { done: 40, failed: 0, left: 0 });
  t.is(new Set(banned).size, banned.length);
});

test('what a busy console refuses is tried three times, and again when the person asks', async (t) => {
  const run = list(1);
  let calls = 0;
  await runBulk(run, async () => (++calls < 3 ? BUSY : null), atOnce);
  t.is(run.rows[0]!.state, 'done');
  const second = list(1);
  await runBulk(second, async () => BUSY, atOnce);
  t.is(second.rows[0]!.failure, BUSY);
  await runBulk(second, async () => null, atOnce);
  t.deepEqual(progressOf(second.rows), { done: 1, failed: 0, left: 0 });
  t.is(second.rows[0]!.failure, null);
});

test('stopping lets what is on its way end and starts nothing more', async (t) => {
  const run = list(50);
  const ban: DoOne<BulkFailure> = async () => {
    run.stopped = 'asked';
    await turn();
    return null;
  };
  await runBulk(run, ban, atOnce);
  const { done, left } = progressOf(run.rows);
  t.true(done >= 1 && done <= 8);
  t.is(done + left, 50);
});
