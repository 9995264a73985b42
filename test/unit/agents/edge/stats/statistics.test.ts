import { mock } from 'node:test';
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { ServerClock } from '../../../../../agents/edge/lib/server-clock.ts';
import { Statistics } from '../../../../../agents/edge/stats/statistics.ts';
import { DrainStatsResponseSchema } from '../../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { temporaryFolder } from '../../helpers/folder.ts';
import { quiet } from './model.ts';

test.serial('counts are taken soon after the start and each minute, and once more at the end', async (t) => {
  const timers = mock.timers;
  timers.enable({ apis: ['setTimeout', 'setInterval'] });
  t.teardown(() => timers.reset());
  let drains = 0;
  const stats = new Statistics({
    folder: temporaryFolder(t),
    nodeId: 'node',
    client: {
      drainStats: async () => {
        drains++;
        return create(DrainStatsResponseSchema);
      },
    },
    clock: new ServerClock(),
    log: quiet,
    channel: () => undefined,
    openBacklog: () => t.fail() as never,
  });
  const after = async (ms: number): Promise<number> => {
    timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
    return drains;
  };
  stats.start();
  t.is(await after(4_999), 0);
  t.is(await after(1), 1);
  t.is(await after(59_999), 1);
  t.is(await after(1), 2);
  t.is(await after(60_000), 3);
  await stats.stop();
  t.is(drains, 4);
  t.is(await after(120_000), 4);
});
