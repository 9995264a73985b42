import test from 'ava';
import { FailedLookups, MOST_FAILURES } from '../../../../services/api-gateway/failed-lookups.ts';

const ADDRESS = '192.0.2.1';
const REFUSED = 'API_KEY_RATE_LIMITED';

function lookups() {
  const state = { now: 0, asked: 0 };
  const failed = new FailedLookups(() => state.now);
  const ask = (found: string | null, address = ADDRESS) =>
    failed.ask(address, REFUSED, async () => {
      state.asked++;
      return found;
    });
  return { failed, state, ask };
}

test('an address has so many failures a minute; the next is refused with the seconds to wait and asks nothing', async (t) => {
  const { state, ask } = lookups();
  for (let n = 0; n < MOST_FAILURES; n++) t.is(await ask(null), null);
  state.now = 20_500;
  const refusal = await t.throwsAsync(ask('found'));
  t.like(refusal, { type: REFUSED, data: { retryAfterSeconds: 40 } });
  t.is(state.asked, MOST_FAILURES);
  t.is(await ask(null, '192.0.2.2'), null, 'another address has its own');
  state.now = 60_000;
  t.is(await ask('found'), 'found');
});

test('what is found is not counted', async (t) => {
  const { ask } = lookups();
  for (let n = 0; n < 3 * MOST_FAILURES; n++) t.is(await ask('found'), 'found');
  t.is(await ask(null), null);
});

test('an error is no failure of the client', async (t) => {
  const { failed, ask } = lookups();
  for (let n = 0; n < 2 * MOST_FAILURES; n++)
    await t.throwsAsync(
      failed.ask(ADDRESS, REFUSED, () => Promise.reject(new Error('away'))),
      { message: 'away' },
    );
  t.is(await ask(null), null);
});

test('lookups under way may all fail: more wait for one of them, and as many fail as may', async (t) => {
  const { failed } = lookups();
  const open: ((found: string | null) => void)[] = [];
  const answers = Array.from({ length: 3 * MOST_FAILURES }, () =>
    failed
      .ask(ADDRESS, REFUSED, () => new Promise<string | null>((resolve) => open.push(resolve)))
      .catch((error: { type: string }) => error.type),
  );
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  t.is(open.length, MOST_FAILURES);
  open[0]!('found');
  await turn();
  t.is(open.length, MOST_FAILURES + 1);
  for (const answer of open.slice(1)) answer(null);
  const all = await Promise.all(answers);
  t.is(open.length, MOST_FAILURES + 1);
  t.is(all.filter((answer) => answer === 'found').length, 1);
  t.is(all.filter((answer) => answer === null).length, MOST_FAILURES);
  t.is(all.filter((answer) => answer === REFUSED).length, 2 * MOST_FAILURES - 1);
});
