import test from 'ava';
import { CredentialCache, REMEMBERED_MS } from '../../../../services/api-gateway/credential-cache.ts';

interface Known {
  name: string;
  lifeMs?: number;
}

const KEY: Known = { name: 'k' };
const ADDRESS = '192.0.2.1';

function cacheOf(answers: Record<string, Known | null>) {
  const asked: string[] = [];
  const state = { now: 0, hears: true };
  const cache = new CredentialCache<Known>({
    find: async (hash) => {
      asked.push(hash);
      return answers[hash] ?? null;
    },
    hears: () => state.hears,
    lifeMs: ({ lifeMs = Number.POSITIVE_INFINITY }) => lifeMs,
    now: () => state.now,
  });
  return { cache, asked, state, answers };
}

/** A cache whose answers come when the test says so. */
function slowCache() {
  const open: { answer(known: Known | null): void; refuse(error: Error): void }[] = [];
  const state = { hears: true };
  const cache = new CredentialCache<Known>({
    find: () => new Promise((answer, refuse) => open.push({ answer, refuse })),
    hears: () => state.hears,
  });
  return { cache, open, state };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a credential is asked for once in its time, known or not', async (t) => {
  const { cache, asked, state } = cacheOf({ a: KEY });
  t.is(await cache.get('a', ADDRESS), KEY);
  t.is(await cache.get('a', ADDRESS), KEY);
  t.is(await cache.get('b', ADDRESS), null);
  t.is(await cache.get('b', ADDRESS), null);
  t.deepEqual(asked, ['a', 'b']);
  state.now = REMEMBERED_MS - 1;
  await cache.get('a', ADDRESS);
  t.deepEqual(asked, ['a', 'b']);
  state.now = REMEMBERED_MS;
  await cache.get('a', ADDRESS);
  await cache.get('b', ADDRESS);
  t.deepEqual(asked, ['a', 'b', 'a', 'b']);
});

test('what ends by itself is not remembered beyond its end', async (t) => {
  const { cache, asked, state } = cacheOf({ a: { name: 'short', lifeMs: 10 }, b: { name: 'over', lifeMs: 0 } });
  await cache.get('a', ADDRESS);
  state.now = 9;
  await cache.get('a', ADDRESS);
  t.deepEqual(asked, ['a']);
  state.now = 10;
  await cache.get('a', ADDRESS);
  t.deepEqual(asked, ['a', 'a']);
  await cache.get('b', ADDRESS);
  await cache.get('b', ADDRESS);
  t.deepEqual(asked, ['a', 'a', 'b', 'b']);
});

test('what has ended is forgotten at once', async (t) => {
  const { cache, answers } = cacheOf({ a: KEY });
  await cache.get('a', ADDRESS);
  answers.a = null;
  cache.forget('a');
  t.is(await cache.get('a', ADDRESS), null);
});

test('after a gap nothing is remembered', async (t) => {
  const { cache, asked } = cacheOf({ a: KEY });
  await cache.get('a', ADDRESS);
  await cache.get('b', ADDRESS);
  cache.clear();
  await cache.get('a', ADDRESS);
  await cache.get('b', ADDRESS);
  t.deepEqual(asked, ['a', 'b', 'a', 'b']);
});

test('many requests at once ask one question', async (t) => {
  const { cache, asked } = cacheOf({ a: KEY });
  await Promise.all(Array.from({ length: 50 }, () => cache.get('a', ADDRESS)));
  t.deepEqual(asked, ['a']);
});

for (const [what, end] of [
  ['during the end of a credential', (cache: CredentialCache<Known>) => cache.forget('a')],
  ['over a gap', (cache: CredentialCache<Known>) => cache.clear()],
] as const) {
  test(`an answer that was on its way ${what} is not remembered`, async (t) => {
    const { cache, open } = slowCache();
    const first = cache.get('a', ADDRESS);
    end(cache);
    const second = cache.get('a', ADDRESS);
    open[0]!.answer(KEY);
    await first;
    open[1]!.answer(null);
    t.is(await second, null);
    t.is(await cache.get('a', ADDRESS), null);
    t.is(open.length, 2);
  });
}

test('while it does not hear what ends, memory counts for nothing and no answer is older than its request', async (t) => {
  const { cache, open, state } = slowCache();
  const remembered = cache.get('a', ADDRESS);
  open[0]!.answer(KEY);
  await remembered;
  state.hears = false;
  const first = cache.get('a', ADDRESS);
  const later = cache.get('a', ADDRESS);
  t.is(open.length, 2);
  open[1]!.answer(KEY);
  t.is(await first, KEY);
  await settled();
  t.is(open.length, 3);
  open[2]!.answer(null);
  t.is(await later, null);
});

test('a question that began before it stopped hearing is not shared after it', async (t) => {
  const { cache, open, state } = slowCache();
  const before = cache.get('a', ADDRESS);
  state.hears = false;
  const after = cache.get('a', ADDRESS);
  open[0]!.answer(KEY);
  open[1]!.answer(null);
  t.is(await before, KEY);
  t.is(await after, null);
});

test('a failed question is asked again', async (t) => {
  const { cache, open } = slowCache();
  const first = cache.get('a', ADDRESS);
  open[0]!.refuse(new Error('away'));
  await t.throwsAsync(first, { message: 'away' });
  await settled();
  const second = cache.get('a', ADDRESS);
  open[1]!.answer(KEY);
  t.is(await second, KEY);
});

test('a flood of unknown credentials pushes out no known one', async (t) => {
  const { cache, asked } = cacheOf({ a: KEY });
  await cache.get('a', ADDRESS);
  for (let index = 0; index < 5000; index++) await cache.get(`x${index}`, ADDRESS);
  asked.length = 0;
  await cache.get('a', ADDRESS);
  t.deepEqual(asked, []);
});

test('a credential that has been known is asked for without its client being counted, until it has ended', async (t) => {
  const counted: (string | null)[] = [];
  const state = { now: 0, known: KEY as Known | null };
  const cache = new CredentialCache<Known>({
    find: async (_hash, address) => {
      counted.push(address);
      return state.known;
    },
    hears: () => true,
    now: () => state.now,
  });
  const again = async () => {
    state.now += REMEMBERED_MS;
    await cache.get('a', ADDRESS);
  };
  await again();
  await again();
  t.deepEqual(counted, [ADDRESS, null]);
  state.known = null;
  await again();
  await again();
  t.deepEqual(counted, [ADDRESS, null, null, ADDRESS]);
  state.known = KEY;
  await again();
  cache.forget('a');
  await again();
  t.deepEqual(counted.slice(4), [ADDRESS, ADDRESS]);
});
