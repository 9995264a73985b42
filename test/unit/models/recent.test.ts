import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { Recent } from '../../../models/recent.ts';

test('whoever asks within the time shares one answer; afterwards it is read again', async (t) => {
  let reads = 0;
  const recent = new Recent<number>(50);
  const read = async () => ++reads;
  t.deepEqual(await Promise.all([recent.get(read), recent.get(read)]), [1, 1]);
  while ((await recent.get(read)) === 1) await sleep(5);
  t.is(reads, 2);
});

test('each key has an answer of its own, however many there are', async (t) => {
  const reads: string[] = [];
  const recent = new Recent<string>(60_000);
  const ask = (key: string) =>
    recent.get(async () => {
      reads.push(key);
      return key;
    }, key);
  t.deepEqual(await Promise.all(['a', 'b', 'a', 'b', 'a'].map(ask)), ['a', 'b', 'a', 'b', 'a']);
  t.deepEqual(reads, ['a', 'b']);
});

test('a failure is not kept', async (t) => {
  let reads = 0;
  const recent = new Recent<number>(60_000);
  const read = async () => {
    if (++reads === 1) throw new Error('away');
    return reads;
  };
  await t.throwsAsync(recent.get(read), { message: 'away' });
  t.is(await recent.get(read), 2);
  t.is(await recent.get(read), 2);
});
