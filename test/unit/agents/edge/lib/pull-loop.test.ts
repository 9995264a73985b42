import test from 'ava';
import { PullLoop } from '../../../../../agents/edge/lib/pull-loop.ts';
import { memoryLog } from '../../helpers/log.ts';

/** Lets so many steps of promises pass. */
async function steps(count: number): Promise<void> {
  for (let step = 0; step < count; step++) await undefined;
}

test('what is asked for while a round ends is fetched, at whichever step of its end', async (t) => {
  for (let after = 0; after < 12; after++) {
    let pulls = 0;
    const loop = new PullLoop({
      name: 'test',
      log: memoryLog().log,
      pull: async () => {
        pulls++;
        return false;
      },
      settled: () => undefined,
    });
    loop.request();
    await steps(after);
    loop.request();
    await new Promise((resolve) => setImmediate(resolve));
    t.is(pulls, 2, `${after} steps after the first`);
    t.false(loop.busy);
    await loop.stop();
  }
});
