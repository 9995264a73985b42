import test from 'ava';
import { recomputeAll } from '../../../../services/usage/roll-up.ts';

const canceled = () => Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });

test('windows that take too long together are recomputed in smaller numbers', async (t) => {
  const asked: number[] = [];
  let left = 7;
  await recomputeAll(async (windows) => {
    asked.push(windows);
    if (windows > 3) throw canceled();
    left -= Math.min(windows, left);
    return left > 0;
  });
  t.is(left, 0);
  t.deepEqual(asked, [12, 6, 3, 3, 3]);
});

test('one window that takes too long, and any other failure, is told', async (t) => {
  await t.throwsAsync(
    recomputeAll(() => Promise.reject(canceled())),
    { message: /statement timeout/ },
  );
  let calls = 0;
  const failing = () => {
    calls += 1;
    return Promise.reject(new Error('gone'));
  };
  await t.throwsAsync(recomputeAll(failing), { message: 'gone' });
  t.is(calls, 1);
});
