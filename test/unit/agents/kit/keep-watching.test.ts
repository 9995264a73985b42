import test from 'ava';
import { backoffDelay, sleep } from '../../../../agents/kit/backoff.ts';
import { keepWatching } from '../../../../agents/kit/keep-watching.ts';
import { memoryLog } from '../helpers/log.ts';

test('the delay before a reconnect doubles from one second to thirty, half of it random', (t) => {
  const delays = (random: number) => [0, 1, 2, 3, 4, 5, 6, 60].map((attempt) => backoffDelay(attempt, () => random));
  t.deepEqual(delays(1), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  t.deepEqual(delays(0), [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
});

test('a stream that ends, fails or falls silent is opened again, and one that lasted resets the count of failures', async (t) => {
  const stopping = new AbortController();
  const failures: number[] = [];
  const problems: string[] = [];
  const events: string[] = [];
  let opened = 0;
  async function* stream(signal: AbortSignal): AsyncGenerator<string> {
    const number = ++opened;
    if (number <= 2) throw new Error(`refused ${number}`);
    yield `hello ${number}`;
    if (number === 3) return;
    if (number === 4) await sleep(60_000, signal);
    if (number === 5) stopping.abort();
  }
  await keepWatching<string>({
    log: memoryLog().log,
    open: stream,
    onEvent: (event) => events.push(event),
    connected: () => events.push('connected'),
    disconnected: (problem) => problems.push(problem),
    signal: stopping.signal,
    silenceMs: 50,
    steadyMs: 0,
    delay: (count) => {
      failures.push(count);
      return 0;
    },
  });
  t.deepEqual(failures, [0, 1, 0, 0]);
  t.deepEqual(events, ['connected', 'hello 3', 'connected', 'hello 4', 'connected', 'hello 5']);
  t.deepEqual(problems.slice(0, 3), ['refused 1', 'refused 2', 'the console ended the stream']);
});

test('a stream that ends right after its first event, again and again, is opened more and more rarely', async (t) => {
  const stopping = new AbortController();
  const failures: number[] = [];
  async function* stream(): AsyncGenerator<string> {
    yield 'hello';
    throw new Error('this cannot be decoded');
  }
  await keepWatching<string>({
    log: memoryLog().log,
    open: stream,
    onEvent: () => undefined,
    connected: () => undefined,
    disconnected: () => failures.length === 4 && stopping.abort(),
    signal: stopping.signal,
    steadyMs: 3_600_000,
    delay: (count) => {
      failures.push(count);
      return 0;
    },
  });
  t.deepEqual(failures, [0, 1, 2, 3]);
});

test('a sleep ends at once when it is cancelled', async (t) => {
  const stopping = new AbortController();
  const sleeping = sleep(600_000, stopping.signal);
  stopping.abort();
  await sleeping;
  await sleep(600_000, stopping.signal);
  t.pass();
});
