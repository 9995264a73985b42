import test from 'ava';
import { SkippedMessages } from '../../../../../agents/edge/lib/skipped-messages.ts';
import { untilItWorks } from '../../../../../agents/kit/backoff.ts';
import { memoryLog } from '../../helpers/log.ts';

test('what was skipped is counted and said for an hour, and logged once a minute', (t) => {
  const { log, lines } = memoryLog();
  let now = 0;
  const skipped = new SkippedMessages('events', log, () => now);
  t.is(skipped.message, '');
  for (; now < 120_000; now += 1000) skipped.note(new Error('invalid wire type'));
  t.is(skipped.count, 120);
  t.regex(skipped.message, /^events .*: 120$/);
  t.is(lines.length, 2);
  now += 3_700_000;
  t.is(skipped.message, '');
});

test('work is tried again with growing delays until it succeeds', async (t) => {
  const failures: string[] = [];
  let tries = 0;
  const result = await untilItWorks(
    async () => {
      if (++tries <= 3) throw new Error(`failure ${tries}`);
      return 'works';
    },
    {
      signal: new AbortController().signal,
      delay: (count) => count,
      failed: (error, retryInMs) => failures.push(`${(error as Error).message} ${retryInMs}`),
    },
  );
  t.is(result, 'works');
  t.deepEqual(failures, ['failure 1 0', 'failure 2 1', 'failure 3 2']);
});

test('work that never succeeds ends when it is cancelled', async (t) => {
  const stopping = new AbortController();
  const result = await untilItWorks(() => Promise.reject(new Error('no')), {
    signal: stopping.signal,
    delay: () => 3_600_000,
    failed: () => setImmediate(() => stopping.abort()),
  });
  t.is(result, undefined);
});
