import test from 'ava';
import { Pace } from '../../../runtime/pace.ts';

test('steps are done one after the other, in the order they were asked for, and what one throws is its own', async (t) => {
  const pace = new Pace();
  const done: number[] = [];
  const step = (number: number) => () => {
    if (number === 2) throw new Error('no');
    done.push(number);
    return number;
  };
  const answers = await Promise.allSettled([1, 2, 3].map((number) => pace.run(step(number))));
  t.deepEqual(
    answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : String(answer.reason))),
    [1, 'Error: no', 3],
  );
  t.deepEqual(done, [1, 3]);
});
