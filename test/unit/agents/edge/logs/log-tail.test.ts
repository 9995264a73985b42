import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { LogTailer } from '../../../../../agents/edge/logs/log-tail.ts';
import { LogTailSchema, type LogTailWatch, LogTailWatchSchema } from '../../../../../proto/gen/svc/node/v1/logs_pb.js';
import { until } from '../../helpers/folder.ts';

function start(isReached = () => true) {
  const asked: string[][] = [];
  const waiting: string[] = [];
  const shown: string[] = [];
  let refuse = false;
  const tailer = new LogTailer({
    client: {
      async tailLogs(watches: LogTailWatch[]) {
        asked.push(watches.map(({ siteId }) => siteId));
        return { rows: waiting.splice(0).map((row) => Buffer.from(row)), dropped: [] };
      },
    },
    channel: () =>
      isReached()
        ? {
            async reportLogTail({ rows = [] }) {
              if (refuse) throw new Error('the console is away');
              shown.push(...rows.map((row) => Buffer.from(row).toString()));
            },
          }
        : undefined,
    offsetMs: () => 0,
    log: { debug: () => undefined },
  });
  const watch = (seconds: number, ...siteIds: string[]) =>
    tailer.watch(
      create(LogTailSchema, {
        intervalMs: 100,
        watches: siteIds.map((siteId) => create(LogTailWatchSchema, { siteId, seconds, rowsPerSecond: 200 })),
      }),
    );
  return { tailer, watch, asked, waiting, shown, refuse: (on: boolean) => (refuse = on) };
}

test('rows of watched sites go to the console, those of a failed call are not repeated', async (t) => {
  const { tailer, watch, asked, waiting, shown, refuse } = start();
  waiting.push('a', 'b');
  watch(30, 'one', 'two');
  await until(t, 'the rows', () => shown.length === 2);
  t.deepEqual(asked[0], ['one', 'two']);
  refuse(true);
  waiting.push('c');
  await until(t, 'the call that fails', () => waiting.length === 0);
  const calls = asked.length;
  await until(t, 'the call after it', () => asked.length > calls);
  refuse(false);
  waiting.push('d');
  await until(t, 'the next row', () => shown.includes('d'));
  t.deepEqual(shown, ['a', 'b', 'd']);
  await tailer.stop();
});

test('a watch that nobody renews ends, in the data plane too', async (t) => {
  const { tailer, watch, asked } = start();
  watch(1, 'one');
  await until(t, 'the end', () => asked.at(-1)?.length === 0);
  const calls = asked.length;
  watch(30, 'two');
  await until(t, 'the next watch', () => asked.length > calls);
  t.deepEqual(asked[calls], ['two']);
  watch(0);
  await until(t, 'the end by the console', () => asked.at(-1)?.length === 0);
  await tailer.stop();
});

test('while the console is not reached the data plane is not asked', async (t) => {
  let isReached = false;
  let looked = 0;
  const { tailer, watch, asked, waiting, shown } = start(() => {
    looked++;
    return isReached;
  });
  waiting.push('a');
  watch(30, 'one');
  await until(t, 'some turns', () => looked > 2);
  t.deepEqual(asked, []);
  isReached = true;
  await until(t, 'the row', () => shown.length === 1);
  await tailer.stop();
});
