// Tasks that wait for those before them, and how many may.
import test from 'ava';
import { ContractError } from '../../../contract/errors.ts';
import { KeyedQueue } from '../../../runtime/keyed-queue.ts';

test('tasks of a key run one after the other, whatever became of the one before', async (t) => {
  const queue = new KeyedQueue();
  const gate = Promise.withResolvers<void>();
  const order: string[] = [];
  const first = queue.run('a', async () => {
    await gate.promise;
    order.push('first');
    throw new Error('first');
  });
  const second = queue.run('a', async () => order.push('second'));
  await queue.run('b', async () => order.push('other key'));
  gate.resolve();
  await t.throwsAsync(first, { message: 'first' });
  await second;
  t.deepEqual(order, ['other key', 'first', 'second']);
});

test('where as many wait as may, the next is refused at once and never runs; other keys go on', async (t) => {
  const queue = new KeyedQueue(2);
  const gate = Promise.withResolvers<void>();
  let ran = 0;
  const task = async () => {
    await gate.promise;
    ran++;
  };
  const taken = [queue.run('a', task), queue.run('a', task), queue.run('a', task)];
  const refused = await t.throwsAsync(queue.run('a', task), { instanceOf: ContractError });
  t.like(refused, { type: 'SERVICE_UNAVAILABLE', data: { retryAfterSeconds: 1 } });
  t.is(await queue.run('b', async () => 'b'), 'b');
  gate.resolve();
  await Promise.all(taken);
  t.is(ran, 3);
  t.is(await queue.run('a', async () => 'again'), 'again');
});
