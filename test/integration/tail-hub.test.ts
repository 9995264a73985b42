// Readers of requests as they end that do not keep up, and what the node channel is told of them.
import { PassThrough } from 'node:stream';
import test from 'ava';
import type { Redis } from 'ioredis';
import type { TailLine } from '../../contract/resources/log-tail.ts';
import { type TailLease, type TailRows, tailLeasesChannel, tailRowsChannel } from '../../runtime/log-tail.ts';
import { TailHub } from '../../services/api-gateway/live/tail-hub.ts';
import { eventually } from '../helpers/eventually.ts';
import { createPipeline, type Pipeline } from '../helpers/pipeline.ts';

let pipeline: Pipeline;
let hub: TailHub;
let leases: Redis;
const told: TailLease[] = [];

test.before(async () => {
  pipeline = await createPipeline();
  const { runtime } = pipeline;
  leases = runtime.newRedis();
  await leases.subscribe(tailLeasesChannel(runtime));
  leases.on('message', (_channel: string, message: string) => told.push(JSON.parse(message) as TailLease));
  hub = new TailHub(runtime, async (tokens) => tokens.map(() => true));
});
test.after.always(async () => {
  await hub?.stop();
  leases?.disconnect();
  await pipeline?.close();
});

function reader(highWaterMark?: number) {
  const sink = new PassThrough(highWaterMark === undefined ? {} : { highWaterMark });
  const lines: TailLine[] = [];
  let rest = '';
  const take = () => {
    rest += (sink.read() as Buffer | null)?.toString() ?? '';
    const complete = rest.split('\n');
    rest = complete.pop()!;
    lines.push(...complete.map((line) => JSON.parse(line) as TailLine));
    return lines;
  };
  return { sink, take };
}
const sum = (lines: readonly TailLine[]) =>
  lines.reduce((all, line) => (line.type === 'rows' ? all + line.entries.length + line.dropped : all), 0);
const rows = (lines: readonly TailLine[]) =>
  lines.reduce((all, line) => all + (line.type === 'rows' ? line.entries.length : 0), 0);

test.serial('a slow reader misses rows and is told how many; others get all', async (t) => {
  const [slow, quick] = [reader(64), reader()];
  const search = { siteId: 'slow', clusterId: 'c', filter: {} };
  await hub.open('a', search, slow.sink as never);
  await hub.open('b', search, quick.sink as never);
  const SENT = 10;
  const { runtime } = pipeline;
  for (let number = 1; number <= SENT; number++) {
    const message: TailRows = { entries: [{ path: `/${number}` } as never], dropped: number === 1 ? 7 : 0 };
    await runtime.redis.publish(tailRowsChannel(runtime, 'slow'), JSON.stringify(message));
    await eventually(() => sum(quick.take()) === 7 + number);
  }
  t.is(rows(quick.take()), SENT);
  t.true(slow.sink.readableLength < 1_000);
  await eventually(() => sum(slow.take()) === 7 + SENT);
  t.true(rows(slow.take()) < SENT);
  slow.sink.destroy();
  quick.sink.destroy();
});

test.serial('the node channel is told what is watched, and when nothing is any more', async (t) => {
  const [first, second] = [reader(), reader()];
  const latest = (siteId: string) => told.at(-1)?.watches.find((watch) => watch.siteId === siteId);
  await hub.open('a', { siteId: 'one', clusterId: 'c', filter: { status: 404 } }, first.sink as never);
  await eventually(() => latest('one')?.filters.length === 1);
  t.deepEqual(latest('one'), { siteId: 'one', clusterId: 'c', filters: [{ status: 404 }] });
  await hub.open('a', { siteId: 'one', clusterId: 'c', filter: {} }, second.sink as never);
  // A reader of everything needs everything.
  await eventually(() => latest('one')?.filters.length === 0);
  second.sink.destroy();
  await eventually(() => latest('one')?.filters.length === 1);
  first.sink.destroy();
  await eventually(() => told.at(-1)!.watches.length === 0);
  t.pass();
});
