import { createServer } from 'node:http';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import test, { type ExecutionContext } from 'ava';
import { EdgeClient } from '../../../../agents/edge/caddy/edge-client.ts';
import { StatsReporter } from '../../../../agents/edge/run/stats-reporter.ts';
import { NodeChannel } from '../../../../agents/kit/channel-client.ts';
import { EdgeService } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type SiteMinute, SiteMinuteSchema } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { TestAuthority } from '../helpers/authority.ts';
import { TestConsole } from '../helpers/console.ts';
import { testIdentity } from '../helpers/feeds.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

/** Counters as the edge hands them out: a batch stays until it is acknowledged; a new process starts over at 1. */
class Counters {
  instance = 'first';
  sequence = 0n;
  batch: SiteMinute[] = [];
  pending: SiteMinute[] = [];
  count(minutes: number): void {
    for (let index = 0; index < minutes; index++)
      this.pending.push(create(SiteMinuteSchema, { siteId: `s${index}`, minute: 60n, requests: 1n }));
  }
  drain(acknowledged: bigint): { sequence: bigint; minutes: SiteMinute[] } {
    if (acknowledged === this.sequence) this.batch = [];
    if (this.batch.length === 0 && this.pending.length > 0) {
      this.sequence++;
      this.batch = this.pending;
      this.pending = [];
    }
    return this.batch.length === 0 ? { sequence: 0n, minutes: [] } : { sequence: this.sequence, minutes: this.batch };
  }
}

async function setUp(t: ExecutionContext) {
  const folder = temporaryFolder(t);
  const counters = new Counters();
  const server = createServer(
    connectNodeAdapter({
      routes: (router) =>
        router.service(EdgeService, { drainStats: ({ acknowledged }) => counters.drain(acknowledged) }),
    }),
  );
  const socket = join(folder, 'edge.sock');
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  const channel = new NodeChannel(await testIdentity(testConsole));
  const client = new EdgeClient(socket);
  t.teardown(async () => {
    client.close();
    server.close();
    channel.close();
    await testConsole.stop();
  });
  const reporter = () =>
    new StatsReporter({
      path: join(folder, 'stats.json'),
      client,
      channel: () => channel,
      instance: () => counters.instance,
      log: memoryLog().log,
    });
  /** Requests as the console counts them: each batch number once. */
  const counted = (): number =>
    new Map(testConsole.stats.map(({ sequence, minutes }) => [sequence, minutes.length]))
      .values()
      .reduce((sum, rows) => sum + rows, 0);
  return { counters, testConsole, reporter, counted };
}

test('a batch is reported and acknowledged once', async (t) => {
  const { counters, testConsole, reporter } = await setUp(t);
  const stats = reporter();
  counters.count(3);
  await stats.report();
  await stats.report();
  t.is(testConsole.stats.length, 1);
  t.is(counters.drain(0n).sequence, 0n);
});

test('the console fails, the agent restarts in between: every request counts once', async (t) => {
  const { counters, testConsole, reporter, counted } = await setUp(t);
  counters.count(3);
  testConsole.onCall = (method) => {
    if (method === 'reportStats') throw new ConnectError('later', Code.Unavailable);
  };
  await reporter().report();
  t.is(counted(), 0);
  testConsole.onCall = () => undefined;
  await reporter().report();
  // Stored by the console, but the acknowledgement is lost with the agent.
  Object.assign(counters, { batch: testConsole.stats[0]!.minutes, sequence: 1n });
  await reporter().report();
  t.is(testConsole.stats.length, 2);
  t.is(testConsole.stats[0]!.sequence, testConsole.stats[1]!.sequence);
  t.is(counted(), 3);
});

test('a new process of the edge counts from one again: its batches are new ones', async (t) => {
  const { counters, reporter, testConsole, counted } = await setUp(t);
  const stats = reporter();
  counters.count(3);
  await stats.report();
  Object.assign(counters, { instance: 'second', sequence: 0n, batch: [] });
  counters.count(2);
  await stats.report();
  t.is(counted(), 5);
  t.true(testConsole.stats[1]!.sequence > testConsole.stats[0]!.sequence);
});

test('a large batch travels in parts that keep their numbers when it is repeated', async (t) => {
  const { counters, testConsole, reporter, counted } = await setUp(t);
  counters.count(12_000);
  let calls = 0;
  testConsole.onCall = (method) => {
    if (method === 'reportStats' && ++calls === 2) throw new ConnectError('later', Code.Unavailable);
  };
  await reporter().report();
  t.is(testConsole.stats.length, 1);
  await reporter().report();
  t.is(counted(), 12_000);
  t.true(testConsole.stats.every(({ minutes }) => minutes.length <= 10_000));
  counters.count(1);
  await reporter().report();
  t.is(counted(), 12_001);
});
