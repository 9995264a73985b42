import test from 'ava';
import { KEY_CACHE_MS, KeyCache, type KnownKey } from '../../../../services/api-gateway/key-cache.ts';

const KEY: KnownKey = { kind: 'access_key', keyId: '1', id: '1', name: 'k', scope: 'read' };

function cacheOf(answers: Record<string, KnownKey | null>) {
  const asked: string[] = [];
  const clock = { now: 0 };
  const find = async (hash: string) => {
    asked.push(hash);
    return answers[hash] ?? null;
  };
  return { cache: new KeyCache(find, () => clock.now), asked, clock, answers };
}

test('a key is asked for once in its time, known or not', async (t) => {
  const { cache, asked, clock } = cacheOf({ a: KEY });
  t.is(await cache.get('a', 'access_key'), KEY);
  t.is(await cache.get('a', 'access_key'), KEY);
  t.is(await cache.get('b', 'access_key'), null);
  t.is(await cache.get('b', 'access_key'), null);
  t.deepEqual(asked, ['a', 'b']);
  clock.now = KEY_CACHE_MS;
  await cache.get('a', 'access_key');
  t.deepEqual(asked, ['a', 'b', 'a']);
});

test('a revoked key is forgotten at once', async (t) => {
  const { cache, answers } = cacheOf({ a: KEY });
  await cache.get('a', 'access_key');
  answers.a = null;
  cache.forget('a');
  t.is(await cache.get('a', 'access_key'), null);
});

test('many requests at once ask one question', async (t) => {
  const { cache, asked } = cacheOf({ a: KEY });
  await Promise.all(Array.from({ length: 50 }, () => cache.get('a', 'access_key')));
  t.deepEqual(asked, ['a']);
});

test('an answer that was on its way during a revocation is not remembered', async (t) => {
  const answers: ((key: KnownKey | null) => void)[] = [];
  const cache = new KeyCache(() => new Promise((resolve) => answers.push(resolve)));
  const first = cache.get('a', 'access_key');
  cache.forget('a');
  const second = cache.get('a', 'access_key');
  answers[0]!(KEY);
  await first;
  answers[1]!(null);
  t.is(await second, null);
  t.is(await cache.get('a', 'access_key'), null);
  t.is(answers.length, 2);
});

test('a failed question is asked again', async (t) => {
  let fails = true;
  const cache = new KeyCache(async () => {
    if (fails) throw new Error('away');
    return KEY;
  });
  await t.throwsAsync(cache.get('a', 'access_key'));
  fails = false;
  t.is(await cache.get('a', 'access_key'), KEY);
});

test('a flood of unknown keys pushes out no known one', async (t) => {
  const { cache, asked } = cacheOf({ a: KEY });
  await cache.get('a', 'access_key');
  for (let index = 0; index < 5000; index++) await cache.get(`x${index}`, 'access_key');
  asked.length = 0;
  await cache.get('a', 'access_key');
  t.deepEqual(asked, []);
});
