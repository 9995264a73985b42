import test from 'ava';
import { inParts } from '../../../../services/usage/compaction.ts';

const canceled = () => Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });

test('sites that take too long together are compacted in smaller parts', async (t) => {
  const done: string[] = [];
  const act = async ({ part, of }: { part: number; of: number }) => {
    if (of < 4) throw canceled();
    done.push(`${part}/${of}`);
  };
  t.is(await inParts(act, 1), 4);
  t.deepEqual(done, ['0/4', '1/4', '2/4', '3/4']);
});

test('what fails otherwise, or takes too long for the smallest part, ends it', async (t) => {
  await t.throwsAsync(
    inParts(async () => {
      throw new Error('the connection is lost');
    }, 1),
    { message: /lost/ },
  );
  await t.throwsAsync(
    inParts(async () => {
      throw canceled();
    }, 1),
    { code: '57014' },
  );
});
