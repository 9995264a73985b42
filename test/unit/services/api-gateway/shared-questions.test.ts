import test from 'ava';
import { SharedQuestions } from '../../../../services/api-gateway/shared-questions.ts';

function questions() {
  const open: { key: string; answer: (value: string) => void; refuse: (error: Error) => void }[] = [];
  const turns = new SharedQuestions<string>();
  const ask = (key: string) =>
    turns.ask(key, () => new Promise((answer, refuse) => open.push({ key, answer, refuse })));
  return { shared: { ask }, open };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('whoever asks while a question is under way shares the next one, and gets no older answer', async (t) => {
  const { shared, open } = questions();
  const first = shared.ask('a');
  const later = [shared.ask('a'), shared.ask('a'), shared.ask('a')];
  t.is(open.length, 1);
  open[0]!.answer('before');
  t.is(await first, 'before');
  await settled();
  t.is(open.length, 2);
  const third = shared.ask('a');
  open[1]!.answer('after');
  t.deepEqual(await Promise.all(later), ['after', 'after', 'after']);
  await settled();
  t.is(open.length, 3);
  open[2]!.answer('last');
  t.is(await third, 'last');
});

test('nothing is remembered once nobody asks, and other keys do not wait', async (t) => {
  const { shared, open } = questions();
  const one = shared.ask('a');
  const other = shared.ask('b');
  t.deepEqual(
    open.map(({ key }) => key),
    ['a', 'b'],
  );
  open[0]!.answer('1');
  open[1]!.answer('2');
  t.deepEqual(await Promise.all([one, other]), ['1', '2']);
  await settled();
  void shared.ask('a');
  t.is(open.length, 3);
});

test('a question that fails fails for those who shared it; the next one is asked all the same', async (t) => {
  const { shared, open } = questions();
  const first = shared.ask('a');
  const second = shared.ask('a');
  open[0]!.refuse(new Error('away'));
  await t.throwsAsync(first, { message: 'away' });
  await settled();
  open[1]!.answer('back');
  t.is(await second, 'back');
});
