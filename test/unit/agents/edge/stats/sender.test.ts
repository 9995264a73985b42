import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { StatsSender } from '../../../../../agents/edge/stats/sender.ts';
import type { Outgoing } from '../../../../../agents/edge/stats/spool.ts';
import { ReportStatsResponseSchema } from '../../../../../proto/gen/svc/node/v1/node_pb.js';
import { until } from '../../helpers/folder.ts';
import { drain, ModelConsole, ModelDataPlane, ModelFiles, NOW, openSpool, quiet } from './model.ts';

/** A sender between a spool and a console; each call is noted with the connection it came over. */
function setUp(refuse: () => boolean = () => false, answersBacklog = true) {
  const target = new ModelConsole();
  const calls: string[] = [];
  let open = 0;
  let flying = 0;
  let most = 0;
  let cutOff: (reason: Error) => void = () => undefined;
  const lane = (name: string) => ({
    reportStats: async (request: object) => {
      const batch = request as Outgoing;
      calls.push(`${name} ${batch.sequence}`);
      most = Math.max(most, ++flying);
      await new Promise((resolve, reject) => {
        if (name === 'own' && !answersBacklog) cutOff = reject;
        else setImmediate(resolve);
      });
      flying--;
      if (refuse()) throw new Error('unavailable');
      const acknowledged = batch.sequence === 0n ? target.cursor : target.report(batch);
      return create(ReportStatsResponseSchema, { acknowledged });
    },
  });
  const dataPlane = new ModelDataPlane();
  const spool = openSpool(new ModelFiles());
  const state = { connected: true };
  const sender = new StatsSender({
    spool,
    channel: () => (state.connected ? lane('present') : undefined),
    openBacklog: () => {
      open++;
      return {
        ...lane('own'),
        close: () => {
          open--;
          cutOff(new Error('closed'));
        },
      };
    },
    log: quiet,
  });
  const count = async (minute: number): Promise<void> => {
    dataPlane.count(NOW + minute * 60, 1);
    await drain(spool, dataPlane);
  };
  return { target, calls, spool, sender, state, count, open: () => open, most: () => most };
}

test('the current minute goes over the present connection, the backlog over one of its own, one batch at a time', async (t) => {
  const { target, calls, spool, sender, state, count, open, most } = setUp();
  state.connected = false;
  for (const minute of [0, 1, 2]) await count(minute);
  sender.wake();
  t.deepEqual(calls, [], 'nothing is tried while the console is not reached');
  state.connected = true;
  sender.wake();
  await until(t, 'all is stored', () => spool.waiting === 0n);
  await count(3);
  sender.wake();
  await until(t, 'the next minute is stored', () => target.stored.length === 4);
  t.deepEqual(calls, ['present 0', 'own 1', 'own 2', 'present 3', 'present 4']);
  t.deepEqual([open(), most()], [0, 1]);
  await sender.stop();
});

test('a batch that was refused is sent again under its number', async (t) => {
  let failures = 2;
  const { target, calls, sender, count } = setUp(() => failures-- > 0);
  await count(0);
  sender.wake();
  await until(t, 'it is stored', () => target.stored.length === 1);
  t.deepEqual(calls, ['present 0', 'present 0', 'present 0', 'present 1']);
  await sender.stop();
});

test('a sender that is stopped leaves no connection open and loses nothing', async (t) => {
  const { spool, sender, count, open, calls } = setUp(() => false, false);
  for (const minute of [0, 1, 2, 3]) await count(minute);
  sender.wake();
  await until(t, 'the first is under way', () => calls.includes('own 1'));
  await sender.stop();
  t.is(open(), 0);
  t.is(spool.waiting, 4n);
});
