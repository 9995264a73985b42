// What nobody can be faster than on this machine and at this moment: a bare insert and commit through the console's own
// pool, then the bytes of the feed's last batch pushed to plain HTTP/2 streams, one connection each as nodes have, by a
// bare Node server. The server and the streams' ends are processes of their own, as the console and a fleet are.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type ClientHttp2Stream, connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Runtime } from '../../runtime/runtime.ts';
import { fanoutStream } from '../../runtime/stream-names.ts';
import { clockMs } from '../fleet/fleet.ts';
import { type Installation, withRuntime } from './stack.ts';
import { percentile, round2 } from './stats.ts';

/** How many times as long as the floor ours may take. */
const TIMES = 3;
const WAIT_MS = 30_000;
const START_MS = 120_000;
/** Streams opened at once. */
const OPEN_STEP = 50;
const LENGTH_BYTES = 4;

/** A feed, the pool that its changes are written through, and how many listen. */
export interface FloorOptions {
  feed: 'config' | 'bans';
  streams: number;
}

export interface Floor {
  /** Milliseconds from before the insert until each stream had all bytes. */
  push(): Promise<number[]>;
  stop(): void;
}

type Facts = Pick<Installation['facts'], 'clusterId' | 'pids'>;

export async function startFloor(installation: Installation, options: FloorOptions): Promise<Floor> {
  const { clusterId, pids } = installation.facts;
  const server = fork(import.meta.filename, ['floor-server']);
  const clients = fork(import.meta.filename, ['floor-clients']);
  const stop = () => {
    server.kill('SIGKILL');
    clients.kill('SIGKILL');
  };
  try {
    server.send({ facts: { clusterId, pids } satisfies Facts, feed: options.feed });
    const port = await answer<number>(server, START_MS);
    clients.send({ port, streams: options.streams });
    await answer(clients, START_MS);
    await answer(server, START_MS, { streams: options.streams });
  } catch (error) {
    stop();
    throw error;
  }
  return {
    push: async () => {
      const received = answer<number[]>(clients, WAIT_MS);
      const begun = await answer<number>(server, WAIT_MS, 'push');
      return (await received).map((at) => at - begun);
    },
    stop,
  };
}

/** The next thing that the process says, after being told something. */
async function answer<T>(child: ChildProcess, withinMs: number, question?: object | string): Promise<T> {
  const said = once(child, 'message', { signal: AbortSignal.timeout(withinMs) });
  if (question !== undefined) child.send(question);
  const [message] = (await said) as [{ value: T }];
  return message.value;
}

/** Figures of the floor and of ours as multiples of it, with their aims. */
export function besideFloor(floor: readonly number[], edge: readonly number[], fleet: readonly number[]) {
  const times = {
    edgeP50: percentile(edge, 50) / percentile(floor, 50),
    fleetP99: percentile(fleet, 99) / percentile(floor, 99),
  };
  return {
    figures: {
      floor: { p50Ms: round2(percentile(floor, 50)), p99Ms: round2(percentile(floor, 99)) },
      timesFloor: { edgeP50: round2(times.edgeP50), fleetP99: round2(times.fleetP99) },
    },
    aims: [
      { aim: `edge: p50 ≤ ${TIMES} × the floor's`, reached: times.edgeP50 <= TIMES },
      { aim: `fleet: p99 ≤ ${TIMES} × the floor's`, reached: times.fleetP99 <= TIMES },
    ],
  };
}

const say = (value: unknown) => process.send!({ value });
const hear = async <T>(): Promise<T> => ((await once(process, 'message')) as [T])[0];

async function serve(): Promise<void> {
  const { facts, feed } = await hear<{ facts: Facts; feed: FloorOptions['feed'] }>();
  await withRuntime({ facts }, async (runtime) => {
    const pool = feed === 'bans' ? runtime.pools.bans : runtime.pools.api;
    await pool.raw('create table if not exists bench_floor (id bigint generated always as identity, body bytea)');
    const open = new Set<ServerHttp2Stream>();
    const server = createServer();
    server.on('stream', (stream) => {
      stream.respond({ ':status': 200 });
      // The end of a connection is the end of the benchmark.
      stream.on('error', () => undefined);
      open.add(stream);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    say((server.address() as AddressInfo).port);
    const { streams } = await hear<{ streams: number }>();
    if (open.size !== streams) throw new Error(`${open.size} of ${streams} streams are open`);
    say(null);
    process.on('message', async () => {
      const body = await lastBatch(runtime, facts.clusterId, feed);
      const begun = clockMs();
      await pool.transaction((sql) => sql.raw('insert into bench_floor (body) values (?)', [body]));
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt32BE(body.length);
      const frame = Buffer.concat([length, body]);
      for (const stream of open) stream.write(frame);
      say(begun);
    });
    await once(process, 'disconnect');
  });
}

/** The bytes that the feed's last change was pushed as. */
async function lastBatch({ pools, redis, env }: Runtime, clusterId: string, feed: string): Promise<Buffer> {
  const { rows } = await pools.api.raw<{ rows: { epoch: string }[] }>('select epoch::text from console_state');
  const stream = fanoutStream(env.redisPrefix, clusterId, feed, rows[0]!.epoch);
  const [last] = await redis.xrevrangeBuffer(stream, '+', '-', 'COUNT', 1);
  const fields = last?.[1] ?? [];
  const at = fields.findIndex((field) => field.toString() === 'b');
  if (at < 0) throw new Error(`${stream} holds no batch`);
  return fields[at + 1]!;
}

async function listen(): Promise<void> {
  const { port, streams } = await hear<{ port: number; streams: number }>();
  let received: number[] = [];
  const arrived = () => {
    received.push(clockMs());
    if (received.length < streams) return;
    say(received);
    received = [];
  };
  for (let opened = 0; opened < streams; opened += OPEN_STEP) {
    const step = Math.min(OPEN_STEP, streams - opened);
    await Promise.all(Array.from({ length: step }, () => openStream(port, arrived)));
  }
  say(null);
  await once(process, 'disconnect');
}

async function openStream(port: number, arrived: () => void): Promise<void> {
  const stream: ClientHttp2Stream = connect(`http://127.0.0.1:${port}`).request({ ':path': '/' });
  let held: Buffer = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    if (held.length < LENGTH_BYTES) return;
    const end = LENGTH_BYTES + held.readUInt32BE();
    if (held.length < end) return;
    held = held.subarray(end);
    arrived();
  });
  await once(stream, 'response');
}

if (process.argv[2] === 'floor-server' && process.send) await serve();
if (process.argv[2] === 'floor-clients' && process.send) await listen();
