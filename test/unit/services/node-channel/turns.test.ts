import { ConnectError } from '@connectrpc/connect';
import test from 'ava';
import { Turns } from '../../../../services/node-channel/turns.ts';

test('a bounded number runs at once, the line is bounded, and a failure frees its place', async (t) => {
  const turns = new Turns({ running: 2, waiting: 2, waitingEach: 2 });
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  let running = 0;
  let most = 0;
  const task = (index: number) => async () => {
    running += 1;
    most = Math.max(most, running);
    try {
      return await gates[index]!.promise;
    } finally {
      running -= 1;
    }
  };
  const tasks = [0, 1, 2, 3].map((index) => turns.take('node', task(index)));
  await t.throwsAsync(turns.take('node', task(4)), { instanceOf: ConnectError });
  gates[0]!.reject(new Error('failed'));
  await t.throwsAsync(tasks[0]!, { message: 'failed' });
  for (const index of [1, 2, 3]) gates[index]!.resolve(index);
  t.deepEqual(await Promise.all(tasks.slice(1)), [1, 2, 3]);
  t.is(most, 2);
  t.is(await turns.take('node', async () => 7), 7);
});

test('a node with a long line delays another node by one task, and only its own line is full', async (t) => {
  const turns = new Turns({ running: 1, waiting: 100, waitingEach: 3 });
  const gate = Promise.withResolvers<void>();
  const order: string[] = [];
  const running = turns.take('greedy', () => gate.promise);
  const waiting = ['greedy', 'greedy', 'greedy', 'honest', 'other'].map((node) =>
    turns.take(node, async () => {
      order.push(node);
    }),
  );
  await t.throwsAsync(
    turns.take('greedy', async () => undefined),
    { message: /too many requests/ },
  );
  gate.resolve();
  await Promise.all([running, ...waiting]);
  t.deepEqual(order, ['greedy', 'honest', 'other', 'greedy', 'greedy']);
});
