import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { Recent } from '../../../mixins/recent.ts';

test('whoever asks within the time shares one answer; afterwards it is read again', async (t) => {
  let reads = 0;
  const recent = new Recent(50, async () => ++reads);
  t.deepEqual(await Promise.all([recent.get(), recent.get()]), [1, 1]);
  while ((await recent.get()) === 1) await sleep(5);
  t.is(reads, 2);
});

test('a failure is not kept', async (t) => {
  let reads = 0;
  const recent = new Recent(60_000, async () => {
    if (++reads === 1) throw new Error('away');
    return reads;
  });
  await t.throwsAsync(recent.get(), { message: 'away' });
  t.is(await recent.get(), 2);
  t.is(await recent.get(), 2);
});
