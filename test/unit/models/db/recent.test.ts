import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { Recent } from '../../../../models/db/recent.ts';

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

test('an answer of now is never older than its question; who asks during a read shares the next one', async (t) => {
  const gates: PromiseWithResolvers<void>[] = [];
  const recent = new Recent<number>(60_000);
  const read = async () => {
    const number = gates.push(Promise.withResolvers<void>());
    await gates[number - 1]!.promise;
    return number;
  };
  const first = recent.now(read);
  const later = [recent.now(read), recent.now(read)];
  t.is(gates.length, 1, 'one read at a time');
  gates[0]!.resolve();
  t.is(await first, 1);
  const duringSecond = recent.now(read);
  gates[1]!.resolve();
  t.deepEqual(await Promise.all(later), [2, 2]);
  await Promise.resolve();
  gates[2]!.resolve();
  t.is(await duringSecond, 3);
  t.is(await recent.get(read), 3, 'and is young enough for those who take a recent one');
});

test('a failed answer of now is only of those who asked before it', async (t) => {
  let reads = 0;
  const recent = new Recent<number>(60_000);
  const read = async () => {
    if (++reads === 1) throw new Error('away');
    return reads;
  };
  const first = recent.now(read);
  const second = recent.now(read);
  await t.throwsAsync(first, { message: 'away' });
  t.is(await second, 2);
});
