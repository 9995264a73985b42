import test from 'ava';
import { VitalWatches } from '../../../../services/node-channel/vital-watches.ts';

/** A database that answers what the test puts into it, and its questions. */
function database() {
  const world = { rows: [] as object[], questions: 0, wait: undefined as Promise<void> | undefined };
  const pool = {
    query: async () => {
      world.questions += 1;
      // As it is when it is asked.
      const { rows } = world;
      await world.wait;
      return { rows };
    },
  };
  return { world, pool: pool as never };
}

const log = { warn: () => undefined };
const watched = (seconds: number) => [{ clusterId: 'c', siteIds: ['a'], seconds, head: '9' }];

test('many who ask at once cost one question, whatever their cluster', async (t) => {
  const { world, pool } = database();
  world.rows = watched(300);
  const watches = new VitalWatches(pool, log);
  await watches.of('c', 1n);
  await watches.of('other', 1n);
  const { questions } = world;
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => watches.of(index % 2 ? 'c' : 'other', 1n)),
  );
  // One more where what was known has grown old meanwhile.
  t.true(world.questions <= questions + 1);
  t.is(answers.filter((answer) => answer !== null).length, 50);
  t.like(answers[1], { siteIds: ['a'], head: 9n });
});

test('a new revision of a cluster asks anew, for its publication may have brought a watch', async (t) => {
  const { world, pool } = database();
  const watches = new VitalWatches(pool, log);
  t.is(await watches.of('c', 1n), null);
  world.rows = watched(300);
  t.truthy(await watches.of('c', 2n));
});

test('what was being read when the revision came is not believed', async (t) => {
  const { world, pool } = database();
  const watches = new VitalWatches(pool, log);
  const { promise, resolve } = Promise.withResolvers<void>();
  world.wait = promise;
  const early = watches.of('c', 1n);
  while (world.questions === 0) await new Promise((resolve) => setImmediate(resolve));
  world.rows = watched(300);
  const late = watches.of('c', 2n);
  resolve();
  t.is(await early, null);
  t.truthy(await late);
});

test('heartbeats do not wait for a database that does not answer', async (t) => {
  const { world, pool } = database();
  world.wait = new Promise(() => undefined);
  const watches = new VitalWatches(pool, log, 10);
  t.is(await watches.of('c', 1n), null);
});

test('a watch ends by itself, and a question that fails ends none', async (t) => {
  const { world, pool } = database();
  world.rows = watched(300);
  const watches = new VitalWatches(pool, log);
  t.truthy(await watches.of('c', 1n));
  world.wait = Promise.reject(new Error('no database'));
  t.truthy(await watches.of('c', 2n));
  world.wait = undefined;
  world.rows = watched(0);
  t.is(await watches.of('c', 3n), null);
});
